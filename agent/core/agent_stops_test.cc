// What is shown when workers are stopped because another one failed.
#include <csignal>

#include "agent/core/machine_trace.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

// Ranks 2 and 3 run; rank 2 has failed at 200 ms.
void ToFailed(TracedMachine& m) {
  m.At(0, RendezvousConnected{});
  m.At(0,
       Attached{.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)});
  m.At(100, StartOf(1));
  m.At(110, WorkerStarted{.round = RoundId(1), .local_rank = LocalRank(0), .pid = 100});
  m.At(110, WorkerStarted{.round = RoundId(1), .local_rank = LocalRank(1), .pid = 101});
  m.At(200, EndOf(1, 0, {.code = 3}));
}

void ToFailedGone(TracedMachine& m) {
  ToFailed(m);
  m.At(210, EndOf(1, 1, {.signal = SIGTERM}));
  m.At(220, GroupGone{.round = RoundId(1)});
}

// The other nodes read it, too.
TEST(AgentStops, ALostGuardiansNodeIsNamedInTheRemedy) {
  TracedMachine m;
  ToFailed(m);
  m.At(300, GuardianLost{.why = "killed by signal 9"});
  EXPECT_EQ(m.verdict().reason,
            "the guardian of the workers on node n0 was lost (killed by signal 9), and its workers "
            "with it; start node n0 again");
}

TEST(AgentStops, ShowsTheFailureElsewhereThatItsOwnFollowed) {
  TracedMachine m;
  ToFailed(m);
  StopRound stop = StopOf(1, StopCause::kWorkerFailed);
  stop.reason = "worker rank 0 on node a exited with code 7";
  EXPECT_EQ(m.At(300, stop), "show");
  EXPECT_EQ(m.shown(), "round 1 stops: worker rank 0 on node a exited with code 7");
  // Its own was shown when it happened.
  TracedMachine own;
  ToFailed(own);
  stop.culprit = Rank(2);
  EXPECT_EQ(own.At(300, stop), "-");
}

TEST(AgentStops, SaysHowTheOthersWereStoppedWhenTheJobEnds) {
  TracedMachine m;
  ToFailedGone(m);
  Verdict verdict;
  verdict.exit_code = 3;
  EXPECT_EQ(m.At(300, JobEnded{verdict}), "disconnect; show; end 3");
  EXPECT_EQ(m.shown(), "1 more worker of this node was stopped by muster: 1 ended by SIGTERM");
}

TEST(AgentStops, ItsOwnVerdictHoldsTheRestartsThatItHasHeardOf) {
  TracedMachine m;
  m.At(0, RendezvousConnected{});
  m.At(0,
       Attached{.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)});
  StartRound start = StartOf(2);
  start.restarts_charged = 1;
  m.At(100, start);
  m.At(200, StopRequested{.signal = SIGINT});
  m.At(210, GroupGone{.round = RoundId(2)});
  EXPECT_EQ(m.verdict().exit_code, 130);
  EXPECT_EQ(m.verdict().restarts_charged, 1);
}

TEST(AgentStops, SaysAtOnceThatAWorkerHadToBeKilled) {
  AgentOptions options = TracedMachine::DefaultOptions();
  options.shutdown_timeout = std::chrono::milliseconds(500);
  TracedMachine m(options);
  ToFailed(m);
  m.At(210, StopOf(1, StopCause::kWorkerFailed));
  m.At(700, EndOf(1, 1, {.signal = SIGKILL}));
  EXPECT_EQ(m.At(701, GroupGone{.round = RoundId(1)}), "show; send StopDone r1");
  EXPECT_EQ(m.shown(), "1 more worker of this node was stopped by muster: 1 killed after 500 ms");
}

TEST(AgentStops, AKillBeforeTheGraceIsOverIsNotItsOwn) {
  TracedMachine m;
  ToFailed(m);
  EXPECT_EQ(m.At(300, EndOf(1, 1, {.signal = SIGKILL})), "send WorkerFailed r1 rank 3 age 0");
}

TEST(AgentStops, AFailureBeforeTheStopIsReportedThoughTheStopWasHeardOfFirst) {
  TracedMachine m;
  ToFailed(m);
  m.At(300, StopOf(1));
  WorkerEnded before = EndOf(1, 1, {.code = 7});
  before.at = Instant(std::chrono::milliseconds(199));
  EXPECT_EQ(m.At(310, before), "send WorkerFailed r1 rank 3 age 111");
  // One that came of the stop is no failure.
  TracedMachine other;
  ToFailed(other);
  other.At(300, StopOf(1));
  WorkerEnded after = EndOf(1, 1, {.code = 7});
  after.at = Instant(std::chrono::milliseconds(301));
  EXPECT_EQ(other.At(310, after), "-");
}

TEST(AgentStops, TheAgeOfAFailureCountsFromTheWorkersEnd) {
  TracedMachine m;
  m.At(0, RendezvousConnected{});
  m.At(0,
       Attached{.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)});
  m.At(100, StartOf(1));
  WorkerEnded ended = EndOf(1, 0, {.code = 3});
  ended.at = Instant(std::chrono::milliseconds(150));
  EXPECT_TRUE(m.At(200, ended).starts_with("send WorkerFailed r1 rank 2 age 50; "));
}

}  // namespace
}  // namespace muster::agent
