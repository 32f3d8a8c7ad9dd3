// Going in order: SIGTERM to a node whose workers can save, and this node's part in agreeing on the
// step to save after.
#include <csignal>
#include <string>

#include "agent/core/agent_machine.h"
#include "agent/core/machine_trace.h"
#include "base/ids.h"
#include "base/job_types.h"
#include "base/session_messages.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

constexpr Attached AttachedNow() {
  return {.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)};
}

StartRound PlaceOf(int first_rank, int world_nodes) {
  StartRound start = StartOf(1);
  start.group_world_size = world_nodes;
  start.first_rank = Rank(first_rank);
  start.group_rank = GroupRank(first_rank / 2);
  return start;
}

// Runs two workers that ask at each step whether to save.
void ToRunning(TracedMachine& m, int first_rank = 2, int world_nodes = 2) {
  m.At(0, RendezvousConnected{});
  m.At(0, AttachedNow());
  m.At(100, PlaceOf(first_rank, world_nodes));
  for (int i = 0; i < 2; ++i) {
    m.At(150, WorkerReportedStep{
                  .world = WorldOf(1), .local_rank = LocalRank(i), .step = 4, .can_save = true});
  }
}

// Keeps the lease until `ms`.
void Live(TracedMachine& m, int64_t from_ms, int64_t ms) {
  const std::string sent = "send Heartbeat ";
  for (int64_t at = from_ms; at < ms; at += 500) {
    const std::string effects = m.At(at, TimePassed{});
    const size_t beat = effects.find(sent);
    if (beat == std::string::npos) continue;
    m.At(at, HeartbeatAck{.sequence = std::stoull(effects.substr(beat + sent.size()))});
  }
}

WorkerKnowsCheckpoint Knows(int local_rank, int64_t step) {
  return {.world = WorldOf(1), .local_rank = LocalRank(local_rank), .step = step};
}

TEST(AgentLeave, SigtermAsksToLeaveAndLeavesTheWorkersAlone) {
  TracedMachine m;
  ToRunning(m);
  EXPECT_EQ(m.At(200, StopRequested{.signal = SIGTERM}),
            "show; send LeaveRequest preempted (SIGTERM)");
  EXPECT_NE(m.shown().find("within 30 s (--shutdown-timeout)"), std::string::npos) << m.shown();
  EXPECT_EQ(m.At(250, CheckpointAt{.world = WorldOf(1), .step = 6}), "tell checkpoint 6");
  EXPECT_EQ(m.At(260, Knows(0, 6)), "-");
  EXPECT_EQ(m.At(270, Knows(1, 6)), "send CheckpointStepKnown 6");
  m.At(300, CommitNoted{.world = WorldOf(1), .commit = {.step = 6, .directory = "/c/6"}});
  m.At(310, StopOf(1, StopCause::kMembership));
  EXPECT_EQ(m.At(320, GroupGone{.round = RoundId(1)}), "send StopDone r1 step 4");
  Verdict verdict;
  verdict.exit_code = 75;
  EXPECT_EQ(m.At(330, JobEnded{verdict}), "disconnect; end 75");
}

TEST(AgentLeave, WhoHostsTheRendezvousSaysThatItStaysAndUntilWhen) {
  constexpr char kStays[] =
      "this process hosts the rendezvous and stays until the job ends on the other nodes";
  struct Case {
    const char* name;
    bool hosts;
    int world_nodes;
    bool stays;
  };
  for (const Case& c :
       {Case{"the host", true, 2, true}, Case{"the host of a world of one", true, 1, false},
        Case{"another node", false, 2, false}}) {
    SCOPED_TRACE(c.name);
    AgentOptions options = TracedMachine::DefaultOptions();
    options.attach.hosts_rendezvous = c.hosts;
    TracedMachine departing(options);
    ToRunning(departing, /*first_rank=*/2, c.world_nodes);
    departing.At(160, Drained{});
    EXPECT_EQ(departing.shown().find(kStays) != std::string::npos, c.stays) << departing.shown();
    departing.At(200, StopRequested{.signal = SIGTERM});
    EXPECT_EQ(departing.shown().find(kStays) != std::string::npos, c.stays) << departing.shown();
    TracedMachine stopping(options);
    ToRunning(stopping, /*first_rank=*/2, c.world_nodes);
    stopping.At(200, StopRequested{.signal = SIGINT});
    EXPECT_EQ(stopping.shown(),
              std::string("stopped by SIGINT: stopping the workers; ") +
                  (c.stays ? std::string(kStays) + "; a second signal ends the job on all of them"
                           : "a second signal kills the workers"));
  }
}

TEST(AgentLeave, WhoseSignalsArePassedOnByAnotherProcessDoesNotExplainThem) {
  for (bool hosts : {false, true}) {
    AgentOptions options = TracedMachine::DefaultOptions();
    options.attach.hosts_rendezvous = hosts;
    options.explains_signals = false;
    TracedMachine departing(options);
    ToRunning(departing);
    departing.At(200, StopRequested{.signal = SIGTERM});
    EXPECT_EQ(departing.shown().find("second signal"), std::string::npos) << departing.shown();
    TracedMachine stopping(options);
    ToRunning(stopping);
    stopping.At(200, StopRequested{.signal = SIGINT});
    EXPECT_EQ(stopping.shown(), "stopped by SIGINT: stopping the workers");
  }
}

TEST(AgentLeave, AHostThatWaitsSpeaksOfNoOtherNodes) {
  AgentOptions options = TracedMachine::DefaultOptions();
  options.attach.hosts_rendezvous = true;
  options.attach.terms.max_nodes = 3;
  TracedMachine m(options);
  m.At(0, RendezvousConnected{});
  m.At(0, AttachedNow());
  m.At(100, Drained{});
  EXPECT_EQ(m.shown(), "this node is sent away (muster drain)");
}

TEST(AgentLeave, OtherSignalsAndWorkersThatCantSaveStopAtOnce) {
  TracedMachine m;
  ToRunning(m);
  EXPECT_EQ(m.At(200, StopRequested{.signal = SIGINT}), "show; stop r1 signal 2 grace 30000");

  TracedMachine reporting_only;
  ToRunning(reporting_only);
  reporting_only.At(160,
                    WorkerReportedStep{.world = WorldOf(1), .local_rank = LocalRank(1), .step = 5});
  EXPECT_EQ(reporting_only.At(200, StopRequested{.signal = SIGTERM}),
            "show; stop r1 signal 15 grace 30000");

  TracedMachine lost;
  ToRunning(lost);
  lost.At(190, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(lost.At(200, StopRequested{.signal = SIGTERM}),
            "show; stop r1 signal 15 grace 30000; disconnect");
}

TEST(AgentLeave, ASecondSignalKills) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopRequested{.signal = SIGTERM});
  EXPECT_EQ(m.At(300, StopRequested{.signal = SIGTERM}), "show; stop r1 signal 9 grace 0");
  EXPECT_EQ(m.At(310, GroupGone{.round = RoundId(1)}),
            "send Leave stopped by SIGTERM; disconnect; end 143");
}

TEST(AgentLeave, ANoticeMayBeRepeatedAndFollowedBySigterm) {
  TracedMachine m;
  ToRunning(m);
  const StopRequested notice{.signal = SIGTERM, .notice = "preemption signal SIGUSR1"};
  m.At(200, notice);
  EXPECT_EQ(m.At(210, notice), "-");
  EXPECT_EQ(m.At(220, StopRequested{.signal = SIGTERM}), "-") << "which the notice announced";
  EXPECT_EQ(m.At(230, StopRequested{.signal = SIGTERM}), "show; stop r1 signal 9 grace 0");
}

TEST(AgentLeave, SigintAfterANoticeStopsAtOnce) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopRequested{.signal = SIGTERM, .notice = "preemption signal SIGUSR1"});
  EXPECT_EQ(m.At(210, StopRequested{.signal = SIGINT}), "show; stop r1 signal 2 grace 30000");
}

// As schedulers do: the node is sent away, and a moment later told to end.
TEST(AgentLeave, WhoIsDrainedAndThenStoppedIsToBeRunAgain) {
  for (int signal : {SIGTERM, SIGINT}) {
    TracedMachine m;
    m.At(0, RendezvousConnected{});
    m.At(0, AttachedNow());
    m.At(100, StartOf(1));
    m.At(200, Drained{});
    m.At(210, StopRequested{.signal = signal});
    m.At(220, EndOf(1, 0, {.signal = signal}));
    m.At(220, EndOf(1, 1, {.signal = signal}));
    m.At(230, GroupGone{.round = RoundId(1)});
    EXPECT_EQ(m.verdict().exit_code, signal == SIGTERM ? 75 : 130) << m.verdict().reason;
    EXPECT_EQ(m.verdict().reason.find("drained") != std::string::npos, signal == SIGTERM);
  }
}

TEST(AgentLeave, WhoIsDrainedTellsEveryLaterRendezvous) {
  TracedMachine m;
  ToRunning(m);
  EXPECT_EQ(m.At(200, Drained{}), "show");
  EXPECT_EQ(m.At(210, Drained{}), "-");
  m.At(220, RendezvousDisconnected{.why = "reset"});
  m.At(230, TimePassed{});
  EXPECT_EQ(m.At(240, RendezvousConnected{}), "send Attach running r1 highest 1 drained");
  m.At(250, Refused{.code = RefusalCode::kSuperseded, .message = "replaced"});
  m.At(260, GroupGone{.round = RoundId(1)});
  EXPECT_EQ(m.At(700, TimePassed{}), "connect");
  EXPECT_EQ(m.At(710, RendezvousConnected{}), "send Attach highest 1 drained");
}

TEST(AgentLeave, WithoutACheckpointInTimeItLeavesWithoutOne) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopRequested{.signal = SIGTERM, .notice = "preemption notice /run/gone"});
  Live(m, 500, 25200);
  EXPECT_EQ(m.At(25200, TimePassed{}), "show; stop r1 signal 15 grace 5000");
  EXPECT_EQ(m.At(25300, GroupGone{.round = RoundId(1)}),
            "send Leave stopped by preemption notice /run/gone; disconnect; end 143");
}

TEST(AgentLeave, AStopThatTakesTooLongIsCutShort) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopRequested{.signal = SIGTERM});
  Live(m, 500, 20000);
  EXPECT_EQ(m.At(20000, StopOf(1, StopCause::kMembership)),
            "show; abort r1 culprit 0; stop r1 signal 15 grace 30000");
  Live(m, 20500, 30200);
  EXPECT_EQ(m.At(30200, TimePassed{}), "stop r1 signal 9 grace 0");
  // Nobody waits for the rendezvous' word any more either.
  EXPECT_EQ(m.At(30210, GroupGone{.round = RoundId(1)}),
            "send StopDone r1 step 4; send Leave stopped by SIGTERM; disconnect; end 143");
}

TEST(AgentLeave, ARendezvousThatRestartsIsToldAgain) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopRequested{.signal = SIGTERM});
  m.At(300, RendezvousDisconnected{.why = "reset"});
  m.At(300, RendezvousConnected{});
  std::string effects = m.At(310, AttachedNow());
  EXPECT_NE(effects.find("send LeaveRequest preempted (SIGTERM)"), std::string::npos) << effects;
  EXPECT_NE(effects.find("can save"), std::string::npos) << effects;
}

TEST(AgentLeave, WithoutContactAndWithoutWorkersItEnds) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopRequested{.signal = SIGTERM});
  m.At(250, CheckpointAt{.world = WorldOf(1), .step = 6});
  m.At(300, CommitNoted{.world = WorldOf(1), .commit = {.step = 6, .directory = "/c/6"}});
  m.At(310, StopOf(1, StopCause::kMembership));
  m.At(320, GroupGone{.round = RoundId(1)});
  std::string effects = m.At(330, RendezvousDisconnected{.why = "reset"});
  EXPECT_NE(effects.find("end 75"), std::string::npos) << effects;
  EXPECT_EQ(m.verdict().reason,
            "preempted (SIGTERM): this node left after the checkpoint of step 6; run it again to "
            "go on");
}

TEST(AgentLeave, AReplacedNodeThatWantsToGoDoesntJoinAgain) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopRequested{.signal = SIGTERM});
  m.At(300, Refused{.code = RefusalCode::kSuperseded, .message = "replaced"});
  EXPECT_EQ(m.At(310, GroupGone{.round = RoundId(1)}), "end 143");
}

TEST(AgentLeave, AStartInsteadOfAFarewellIsAnsweredWithLeave) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, StopRequested{.signal = SIGTERM});
  m.At(310, StopOf(1, StopCause::kMembership));
  m.At(320, GroupGone{.round = RoundId(1)});
  EXPECT_EQ(m.At(330, StartOf(2)), "send Leave stopped by SIGTERM; disconnect; end 143");
}

// ---- the agreement -------------------------------------------------------------------------

TEST(AgentLeave, RankZerosNodeAsksItsWorkerAndLetsItGoOnWhenAllKnow) {
  TracedMachine m;
  ToRunning(m, /*first_rank=*/0);
  EXPECT_EQ(m.At(200, CheckpointWanted{.world = WorldOf(2)}), "-");
  EXPECT_EQ(m.At(200, CheckpointWanted{.world = WorldOf(1)}), "ask for checkpoint");
  EXPECT_EQ(m.At(210, WorkerAnnouncedCheckpoint{.world = WorldOf(1), .step = 6}),
            "send CheckpointStep 6");
  EXPECT_EQ(m.At(220, CheckpointAgreed{.world = WorldOf(1), .step = 5}), "-");
  EXPECT_EQ(m.At(230, CheckpointAgreed{.world = WorldOf(1), .step = 6}), "agree on checkpoint");
  EXPECT_EQ(m.At(240, CheckpointAgreed{.world = WorldOf(1), .step = 6}), "-");
}

TEST(AgentLeave, OnlyRankZerosNodeAsksAWorker) {
  TracedMachine m;
  ToRunning(m);
  EXPECT_EQ(m.At(200, CheckpointWanted{.world = WorldOf(1)}), "-");
}

TEST(AgentLeave, AnAnnouncementOutlivesTheRendezvous) {
  TracedMachine m;
  ToRunning(m, /*first_rank=*/0);
  m.At(200, CheckpointWanted{.world = WorldOf(1)});
  m.At(210, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(m.At(220, WorkerAnnouncedCheckpoint{.world = WorldOf(1), .step = 6}), "-");
  m.At(230, RendezvousConnected{});
  std::string effects = m.At(240, AttachedNow());
  EXPECT_NE(effects.find("send CheckpointStep 6"), std::string::npos) << effects;
  // Asked again, the worker isn't: it waits.
  EXPECT_EQ(m.At(250, CheckpointWanted{.world = WorldOf(1)}), "send CheckpointStep 6");
}

TEST(AgentLeave, WhoHasFinishedNeedntKnow) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, CheckpointAt{.world = WorldOf(1), .step = 6});
  m.At(210, Knows(0, 6));
  EXPECT_EQ(m.At(220, EndOf(1, 1, {})), "send WorkerSucceeded r1; send CheckpointStepKnown 6");
}

TEST(AgentLeave, AStepThatIsKnownIsNotToldAgain) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, CheckpointAt{.world = WorldOf(1), .step = 6});
  m.At(210, Knows(0, 6));
  m.At(220, Knows(1, 6));
  EXPECT_EQ(m.At(230, CheckpointAt{.world = WorldOf(1), .step = 6}), "send CheckpointStepKnown 6");
  EXPECT_EQ(m.At(240, CheckpointAt{.world = WorldOf(1), .step = 9}), "tell checkpoint 9");
  EXPECT_EQ(m.At(250, Knows(0, 6)), "-") << "of the step before";
}

TEST(AgentLeave, TheEndOfTheRoundVoidsAnAgreement) {
  TracedMachine m;
  ToRunning(m, /*first_rank=*/0);
  m.At(200, CheckpointWanted{.world = WorldOf(1)});
  m.At(210, WorkerAnnouncedCheckpoint{.world = WorldOf(1), .step = 6});
  m.At(220, StopOf(1));
  EXPECT_EQ(m.At(230, CheckpointAgreed{.world = WorldOf(1), .step = 6}), "-");
  EXPECT_EQ(m.At(240, CheckpointAt{.world = WorldOf(1), .step = 6}), "-");
}

}  // namespace
}  // namespace muster::agent
