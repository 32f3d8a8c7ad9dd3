// What an agent does when a word of the rendezvous comes late: after it was told to stop, after its
// guardian has acted, after a newer checkpoint. The simulation found each of these.
#include <csignal>

#include "agent/core/agent_machine.h"
#include "agent/core/machine_trace.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

void ToRunning(TracedMachine& m) {
  m.At(0, RendezvousConnected{});
  m.At(0,
       Attached{.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)});
  m.At(100, StartOf(1));
}

TEST(AgentLateWords, ANodeThatIsReplacedWhileItStopsJoinsAgain) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopOf(1));
  m.At(300, RendezvousDisconnected{.why = "reset"});
  m.At(310, RendezvousConnected{});
  m.At(320, Refused{.code = RefusalCode::kSuperseded, .message = "replaced"});
  m.At(330, GroupGone{.round = RoundId(1)});
  EXPECT_EQ(m.At(700, TimePassed{}), "connect") << "nobody awaits its StopDone";
}

TEST(AgentLateWords, AnAcknowledgementAfterTheGuardiansDeadlineUndoesNothing) {
  TracedMachine m;
  ToRunning(m);
  m.At(1000, TimePassed{});
  // It stood still; the guardian's deadline was 2750.
  m.At(2760, HeartbeatAck{.sequence = 1});
  std::string effects = m.At(2761, EndOf(1, 0, {.signal = SIGKILL}));
  EXPECT_EQ(effects.find("WorkerFailed"), std::string::npos) << effects;
}

TEST(AgentLateWords, ANewerCheckpointAnswersForTheOlderOne) {
  TracedMachine m;
  ToRunning(m);
  Commit older{.step = 50, .directory = "/c/50"};
  Commit newer{.step = 60, .directory = "/c/60"};
  m.At(200, WorkerCommitted{{.world = WorldOf(1), .commit = older}});
  EXPECT_EQ(m.At(210, CommitNoted{.world = WorldOf(1), .commit = newer}), "grant rank 0 step 50");
}

TEST(AgentLateWords, TheEndOfTheJobIsTrueHoweverLateItIsRead) {
  Verdict verdict;
  verdict.exit_code = 69;
  verdict.reason = "job j failed";
  TracedMachine waiting;
  waiting.At(0, RendezvousConnected{});
  EXPECT_EQ(waiting.At(900'000, JobEnded{verdict}), "show; disconnect; end 69")
      << "it stood still past its join timeout";
  EXPECT_NE(waiting.shown().find("had already failed"), std::string::npos) << waiting.shown();

  TracedMachine running;
  ToRunning(running);
  running.At(9'000, JobEnded{verdict});
  EXPECT_EQ(running.At(9'010, GroupGone{.round = RoundId(1)}), "disconnect; end 69");
}

TEST(AgentLateWords, ASlowAnswerToAttachIsFollowedByAHeartbeatAtOnce) {
  TracedMachine m;
  m.At(0, RendezvousConnected{});
  EXPECT_EQ(m.At(1500, Attached{.lease = std::chrono::seconds(3),
                                .reconnect_timeout = std::chrono::seconds(60)}),
            "renew 2750; send Heartbeat 1");
}

bool SaysItWasIn(const TracedMachine& m) {
  return std::get<Attach>(std::get<SendToRendezvous>(m.effects()[0]).message).was_attached;
}

// Loses the stream and opens another as soon as the machine wants one.
void OpenAnother(TracedMachine& m, int64_t ms) {
  std::string effects = m.At(ms, RendezvousDisconnected{.why = "reset"});
  for (int i = 0; effects.find("connect") == std::string::npos && i < 1000; ++i) {
    effects = m.At(++ms, TimePassed{});
  }
  m.At(ms, RendezvousConnected{});
}

TEST(AgentLateWords, AnAttachSaysWhetherTheAgentWasEverIn) {
  TracedMachine m;
  m.At(0, RendezvousConnected{});
  EXPECT_FALSE(SaysItWasIn(m));
  OpenAnother(m, 10);
  EXPECT_FALSE(SaysItWasIn(m)) << "nobody had answered the first one";
  m.At(2000,
       Attached{.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)});
  OpenAnother(m, 2010);
  EXPECT_TRUE(SaysItWasIn(m));
}

}  // namespace
}  // namespace muster::agent
