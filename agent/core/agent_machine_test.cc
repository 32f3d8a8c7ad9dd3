// Every state by every event. A cell is what comes out, or "-" for nothing.
#include "agent/core/agent_machine.h"

#include <csignal>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "agent/core/machine_trace.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kLease(3);

Attached AttachedNow() { return {.lease = kLease, .reconnect_timeout = std::chrono::seconds(60)}; }

// ---- states, all reached by second 1 --------------------------------------------------------

void ToAttaching(TracedMachine& m) { m.At(0, RendezvousConnected{.to_own_address = true}); }

void ToWaiting(TracedMachine& m) {
  ToAttaching(m);
  m.At(0, AttachedNow());
}

void ToRunning(TracedMachine& m) {
  ToWaiting(m);
  m.At(100, StartOf(1));
  m.At(110, WorkerStarted{.round = RoundId(1), .local_rank = LocalRank(0), .pid = 100});
  m.At(110, WorkerStarted{.round = RoundId(1), .local_rank = LocalRank(1), .pid = 101});
}

void ToFailed(TracedMachine& m) {
  ToRunning(m);
  m.At(200, EndOf(1, 0, {.code = 3}));
}

void ToFailedGone(TracedMachine& m) {
  ToFailed(m);
  m.At(210, EndOf(1, 1, {.signal = SIGTERM}));
  m.At(220, GroupGone{.round = RoundId(1)});
}

void ToStopping(TracedMachine& m) {
  ToRunning(m);
  m.At(200, StopOf(1));
}

void ToSucceeded(TracedMachine& m) {
  ToRunning(m);
  m.At(200, EndOf(1, 0, {}));
  m.At(200, EndOf(1, 1, {}));
}

void ToSucceededGone(TracedMachine& m) {
  ToSucceeded(m);
  m.At(210, GroupGone{.round = RoundId(1)});
}

void ToLost(TracedMachine& m) {
  ToRunning(m);
  m.At(300, RendezvousDisconnected{.why = "reset"});
}

void ToSuperseded(TracedMachine& m) {
  ToRunning(m);
  m.At(300, Refused{.code = RefusalCode::kSuperseded, .message = "replaced"});
}

void ToLeaving(TracedMachine& m) {
  ToRunning(m);
  m.At(300, StopRequested{.signal = SIGINT});
}

void ToEnding(TracedMachine& m) {
  ToRunning(m);
  Verdict verdict;
  verdict.exit_code = 5;
  m.At(300, JobEnded{verdict});
}

void ToEnded(TracedMachine& m) {
  ToWaiting(m);
  m.At(300, StopRequested{.signal = SIGINT});
}

struct State {
  std::string name;
  std::function<void(TracedMachine&)> reach;
};

const std::vector<State>& States() {
  static const std::vector<State> states = {{"Connecting", [](TracedMachine&) {}},
                                            {"Attaching", ToAttaching},
                                            {"Waiting", ToWaiting},
                                            {"Running", ToRunning},
                                            {"Failed", ToFailed},
                                            {"FailedGone", ToFailedGone},
                                            {"Stopping", ToStopping},
                                            {"Succeeded", ToSucceeded},
                                            {"SucceededGone", ToSucceededGone},
                                            {"Lost", ToLost},
                                            {"Superseded", ToSuperseded},
                                            {"Leaving", ToLeaving},
                                            {"Ending", ToEnding},
                                            {"Ended", ToEnded}};
  return states;
}

// ---- events, all at 400 ms ------------------------------------------------------------------

struct NamedEvent {
  std::string name;
  AgentEvent event;
};

std::vector<NamedEvent> Events() {
  Verdict verdict;
  verdict.exit_code = 7;
  verdict.reason = "over";
  Commit commit{.step = 50, .directory = "/c/50"};
  auto said = [](RendezvousMessage message) { return RendezvousSaid{std::move(message)}; };
  return {
      {"Connected", RendezvousConnected{}},
      {"Disconnected", RendezvousDisconnected{.why = "reset"}},
      {"Refused", EndpointProbed{.is_refused = true}},
      {"Hopeless", RendezvousDisconnected{.why = "no such host", .is_hopeless = true}},
      {"Attached", said(AttachedNow())},
      {"Disagrees", said(Refused{.code = RefusalCode::kDisagrees, .message = "nnodes"})},
      {"NotAuthorised", said(Refused{.code = RefusalCode::kNotAuthorised, .message = "token"})},
      {"Superseded", said(Refused{.code = RefusalCode::kSuperseded, .message = "replaced"})},
      {"HeartbeatAck", said(HeartbeatAck{.sequence = 1})},
      {"Notice", said(Notice{.text = "waiting"})},
      {"StartSame", said(StartOf(1))},
      {"StartNext", said(StartOf(2))},
      {"StopThis", said(StopOf(1, StopCause::kPeerLost))},
      {"StopOther", said(StopOf(9))},
      {"SuccessNoted", said(SuccessNoted{.world = WorldOf(1)})},
      {"CommitGranted", said(CommitGranted{.world = WorldOf(1), .commit = commit})},
      {"CommitRefused",
       said(CommitRefused{.world = WorldOf(1), .commit = commit, .reason = "stale"})},
      {"CommitNoted", said(CommitNoted{.world = WorldOf(1), .commit = commit})},
      {"JobEnded", said(JobEnded{verdict})},
      {"WorkerStarted", WorkerStarted{.round = RoundId(1), .local_rank = LocalRank(1)}},
      {"SaidHello", WorkerSaidHello{.round = RoundId(1), .local_rank = LocalRank(1)}},
      {"WorkerSucceeded", EndOf(1, 1, {})},
      {"WorkerFailed", EndOf(1, 1, {.code = 4})},
      {"GroupGone", GroupGone{.round = RoundId(1)}},
      {"Shard", WorkerReportedShard{{.world = WorldOf(1), .rank = Rank(2), .commit = commit}}},
      {"Committed", WorkerCommitted{{.world = WorldOf(1), .commit = commit}}},
      {"Answered", WorkerAnswered{.world = WorldOf(1), .local_rank = LocalRank(1)}},
      {"Left", WorkerLeft{.world = WorldOf(1), .local_rank = LocalRank(1)}},
      {"Stepped", WorkerReportedStep{.world = WorldOf(1), .local_rank = LocalRank(1), .step = 5}},
      {"Announced", WorkerAnnouncedCheckpoint{.world = WorldOf(1), .step = 6}},
      {"Knows", WorkerKnowsCheckpoint{.world = WorldOf(1), .local_rank = LocalRank(1), .step = 6}},
      {"CheckpointWanted", said(CheckpointWanted{.world = WorldOf(1)})},
      {"CheckpointAt", said(CheckpointAt{.world = WorldOf(1), .step = 6})},
      {"CheckpointAgreed", said(CheckpointAgreed{.world = WorldOf(1), .step = 6})},
      {"Drained", said(Drained{})},
      {"StopRequested", StopRequested{.signal = SIGTERM}},
      {"GuardianLost", GuardianLost{.why = "killed"}},
      {"TimePassed", TimePassed{}},
  };
}

// By state: the events that do something, and what. An event that isn't named does nothing.
constexpr char kTable[] = R"(
Connecting:
  Connected: send Attach
  Disconnected: show
  Hopeless: end 69
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  StopRequested: disconnect; end 143
  GuardianLost: disconnect; end 70
Attaching:
  Disconnected: show
  Hopeless: end 69
  Attached: renew 2750
  Disagrees: disconnect; end 78
  NotAuthorised: disconnect; end 77
  Superseded: show; disconnect
  Notice: show
  JobEnded: show; disconnect; end 7
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  StopRequested: disconnect; end 143
  GuardianLost: disconnect; end 70
Waiting:
  Disconnected: show; connect
  Hopeless: show; connect
  Disagrees: disconnect; end 78
  NotAuthorised: disconnect; end 77
  Superseded: show; disconnect; connect
  Notice: show
  Drained: show
  StartSame: renew 2750; spawn r1
  StartNext: renew 2750; spawn r2
  StopThis: send StopDone r1
  StopOther: send StopDone r9
  JobEnded: disconnect; end 7
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  StopRequested: send Leave stopped by SIGTERM; disconnect; end 143
  GuardianLost: send Leave, lost: the guardian ...; disconnect; end 70
Running:
  Disconnected: show; connect; probe
  Hopeless: show; connect; probe
  Disagrees: disconnect; abort r1 culprit -1; stop r1 signal 9 grace 0
  NotAuthorised: disconnect; abort r1 culprit -1; stop r1 signal 9 grace 0
  Superseded: show; disconnect; abort r1 culprit -1; stop r1 signal 9 grace 0
  Notice: show
  Drained: show
  StartNext: abort r1 culprit -1; stop r1 signal 9 grace 0
  StopThis: show; abort r1 culprit 0; stop r1 signal 9 grace 0
  StopOther: send StopDone r9
  JobEnded: abort r1 culprit -1; stop r1 signal 15 grace 30000; renew 2900
  WorkerFailed: send WorkerFailed r1 rank 3 age 0; show; abort r1 culprit 3; stop r1 signal 15 grace 30000
  WorkerSucceeded: send WorkerSucceeded r1
  GroupGone: show; disconnect; connect
  Shard: send ShardReport 50; grant rank 2 step 50
  Committed: send CommitDone 50
  Announced: send CheckpointStep 6
  CheckpointAt: tell checkpoint 6
  StopRequested: show; stop r1 signal 15 grace 30000
  GuardianLost: send Leave, lost: the guardian ...; disconnect; end 70
Failed:
  Disconnected: show; connect; probe
  Hopeless: show; connect; probe
  Disagrees: disconnect; stop r1 signal 9 grace 0
  NotAuthorised: disconnect; stop r1 signal 9 grace 0
  Superseded: show; disconnect; stop r1 signal 9 grace 0
  Notice: show
  Drained: show
  StartNext: stop r1 signal 9 grace 0
  StopThis: show; stop r1 signal 9 grace 0
  StopOther: send StopDone r9
  JobEnded: renew 2900
  WorkerFailed: send WorkerFailed r1 rank 3 age 0
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  StopRequested: show
  GuardianLost: send Leave, lost: the guardian ...; disconnect; end 70
FailedGone:
  Disconnected: show; connect
  Hopeless: show; connect
  Disagrees: disconnect; show; end 78
  NotAuthorised: disconnect; show; end 77
  Superseded: show; disconnect; connect
  Notice: show
  Drained: show
  StartNext: renew 2750; spawn r2
  StopThis: show; send StopDone r1
  StopOther: send StopDone r9
  JobEnded: disconnect; show; end 7
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  StopRequested: send Leave stopped by SIGTERM; disconnect; show; end 143
  GuardianLost: send Leave, lost: the guardian ...; disconnect; show; end 70
Stopping:
  Disconnected: show; connect; probe
  Hopeless: show; connect; probe
  Disagrees: disconnect; stop r1 signal 9 grace 0
  NotAuthorised: disconnect; stop r1 signal 9 grace 0
  Superseded: show; disconnect; stop r1 signal 9 grace 0
  Notice: show
  Drained: show
  StopThis: stop r1 signal 9 grace 0
  StopOther: send StopDone r9
  JobEnded: renew 2900
  GroupGone: send StopDone r1
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  StopRequested: show
  GuardianLost: send Leave, lost: the guardian ...; disconnect; end 70
Succeeded:
  Disconnected: show; connect
  Hopeless: show; connect
  Disagrees: disconnect; stop r1 signal 9 grace 0
  NotAuthorised: disconnect; stop r1 signal 9 grace 0
  Superseded: show; disconnect; abort r1 culprit -1; stop r1 signal 9 grace 0
  Notice: show
  Drained: show
  StartNext: abort r1 culprit -1; stop r1 signal 9 grace 0
  StopThis: show; abort r1 culprit 0; stop r1 signal 9 grace 0
  StopOther: send StopDone r9
  JobEnded: renew 2900
  Shard: send ShardReport 50; grant rank 2 step 50
  Committed: send CommitDone 50
  Announced: send CheckpointStep 6
  CheckpointAt: send CheckpointStepKnown 6
  StopRequested: show
  GuardianLost: send Leave, lost: the guardian ...; disconnect; end 70
SucceededGone:
  Disconnected: show; connect
  Hopeless: show; connect
  Disagrees: disconnect; end 78
  NotAuthorised: disconnect; end 77
  Superseded: show; disconnect; connect
  Notice: show
  Drained: show
  StartNext: renew 2750; spawn r2
  StopThis: show; send StopDone r1
  StopOther: send StopDone r9
  JobEnded: disconnect; end 7
  Shard: send ShardReport 50; grant rank 2 step 50
  Committed: send CommitDone 50
  Announced: send CheckpointStep 6
  CheckpointAt: send CheckpointStepKnown 6
  StopRequested: send Leave stopped by SIGTERM; disconnect; end 143
  GuardianLost: send Leave, lost: the guardian ...; disconnect; end 70
Lost:
  Connected: send Attach running r1 highest 1
  Refused: renew 2750
  WorkerFailed: show; abort r1 culprit 3; stop r1 signal 15 grace 30000
  GroupGone: show; disconnect
  Shard: grant rank 2 step 50
  StopRequested: show; stop r1 signal 15 grace 30000; disconnect
  GuardianLost: disconnect; end 70
Superseded:
  GroupGone: connect
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  StopRequested: show
  GuardianLost: end 70
Leaving:
  Disconnected: probe
  Hopeless: probe
  Disagrees: disconnect; stop r1 signal 9 grace 0
  NotAuthorised: disconnect; stop r1 signal 9 grace 0
  Superseded: show; disconnect; abort r1 culprit -1; stop r1 signal 9 grace 0
  Notice: show
  StopThis: abort r1 culprit 0; stop r1 signal 9 grace 0
  StopOther: send StopDone r9
  JobEnded: renew 2900
  GroupGone: send Leave stopped by SIGINT; disconnect; end 130
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  StopRequested: stop r1 signal 9 grace 0
  GuardianLost: send Leave stopped by SIGINT; disconnect; end 130
Ending:
  Disagrees: disconnect; stop r1 signal 9 grace 0
  NotAuthorised: disconnect; stop r1 signal 9 grace 0
  Superseded: show; disconnect; stop r1 signal 9 grace 0
  Notice: show
  StopThis: stop r1 signal 9 grace 0
  StopOther: send StopDone r9
  GroupGone: disconnect; end 5
  Shard: refuse rank 2 step 50
  Committed: refuse rank 0 step 50
  GuardianLost: disconnect; end 5
)";

using Cells = std::map<std::string, std::string>;

std::map<std::string, Cells> Expected() {
  std::map<std::string, Cells> expected;
  std::istringstream lines{std::string(kTable)};
  std::string state;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    size_t colon = line.find(':');
    if (line[0] != ' ') {
      state = line.substr(0, colon);
    } else {
      expected[state][line.substr(2, colon - 2)] = line.substr(colon + 2);
    }
  }
  return expected;
}

// The sentence about a lost guardian is tested elsewhere.
std::string WithoutSentence(std::string effects) {
  size_t at = effects.find("the guardian of");
  size_t end = effects.find("again");
  if (at != std::string::npos) effects.replace(at, end + 5 - at, "the guardian ...");
  return effects;
}

TEST(AgentMachine, EveryEventInEveryStateDoesWhatTheTableSays) {
  std::map<std::string, Cells> expected = Expected();
  for (const State& state : States()) {
    for (const NamedEvent& event : Events()) {
      TracedMachine machine;
      state.reach(machine);
      std::string effects = WithoutSentence(machine.At(400, event.event));
      const Cells& row = expected[state.name];
      auto cell = row.find(event.name);
      std::string wanted = cell == row.end() ? "-" : cell->second;
      EXPECT_EQ(effects, wanted) << state.name << " x " << event.name;
    }
  }
}

// ---- single rules -----------------------------------------------------------------------------

TEST(AgentMachine, GivesUpBeforeFirstContactAfterTheJoinTimeout) {
  AgentOptions options = TracedMachine::DefaultOptions();
  options.join_timeout = std::chrono::seconds(2);
  TracedMachine m(options);
  m.At(0, RendezvousDisconnected{.why = "connection refused"});
  EXPECT_EQ(m.At(1999, TimePassed{}), "connect");
  EXPECT_EQ(m.At(2000, TimePassed{}), "disconnect; end 69");
  EXPECT_EQ(
      m.verdict().reason,
      "the rendezvous at 10.0.0.9:29400 could not be reached within 2 s (connection refused); "
      "check that the node that hosts it is up and that all nodes name the same endpoint");
}

TEST(AgentMachine, GivesUpAtOnceWhereTryingIsHopeless) {
  TracedMachine m;
  m.At(5, RendezvousDisconnected{.why = "nowhere.example doesn't resolve", .is_hopeless = true});
  EXPECT_EQ(m.verdict().exit_code, 69);
  EXPECT_EQ(m.verdict().reason,
            "the rendezvous at 10.0.0.9:29400 can't be reached (nowhere.example doesn't resolve); "
            "check the endpoint's name and port");
}

TEST(AgentMachine, AnAttachThatNobodyAnswersIsTriedAgain) {
  TracedMachine m;
  ToAttaching(m);
  EXPECT_EQ(m.wakeup_ms(), 10'000);
  EXPECT_EQ(m.At(10'000, TimePassed{}), "disconnect; show");
  EXPECT_EQ(m.At(10'050, TimePassed{}), "connect");
}

TEST(AgentMachine, SendsHeartbeatsEveryThirdOfTheLeaseAndRenewsTheDeadlineByTheirSendTimes) {
  TracedMachine m;
  ToRunning(m);
  EXPECT_EQ(m.wakeup_ms(), 1000);
  EXPECT_EQ(m.At(1000, TimePassed{}), "send Heartbeat 1");
  // Acknowledged late: the deadline still counts from the sending, 1000 + 3000 - 500.
  EXPECT_EQ(m.At(1900, HeartbeatAck{.sequence = 1}), "renew 3750");
  EXPECT_EQ(m.At(1950, HeartbeatAck{.sequence = 1}), "-");
  EXPECT_EQ(m.At(1960, HeartbeatAck{.sequence = 77}), "-");
}

TEST(AgentMachine, KillsItsWorkersAtTheDeadlineAndComesBackWithoutThem) {
  TracedMachine m;
  ToLost(m);
  EXPECT_EQ(m.At(2499, TimePassed{}), "-");
  EXPECT_EQ(m.At(2500, TimePassed{}),
            "show; abort r1 culprit -1; stop r1 signal 9 grace 0; disconnect");
  EXPECT_EQ(m.At(2510, EndOf(1, 0, {.signal = SIGKILL})), "-");
  EXPECT_EQ(m.At(2510, EndOf(1, 1, {.signal = SIGKILL})), "-");
  m.At(2520, GroupGone{.round = RoundId(1)});
  EXPECT_EQ(m.At(2800, TimePassed{}), "connect");
  EXPECT_EQ(m.At(2810, RendezvousConnected{}), "send Attach highest 1");
}

TEST(AgentMachine, AWorkerThatTheGuardianKilledAtTheDeadlineHasNotFailed) {
  TracedMachine m;
  ToRunning(m);
  // The process stood still; its first event afterwards is the exit.
  EXPECT_EQ(m.At(9000, EndOf(1, 0, {.signal = SIGKILL})),
            "show; abort r1 culprit -1; stop r1 signal 9 grace 0; disconnect");
  EXPECT_EQ(m.At(9000, EndOf(1, 1, {.signal = SIGKILL})), "-");
  EXPECT_EQ(m.At(9001, GroupGone{.round = RoundId(1)}), "connect");
}

TEST(AgentMachine, AnAcknowledgementThatWaitedInTheQueueCounts) {
  TracedMachine m;
  ToRunning(m);
  m.At(2400, TimePassed{});
  EXPECT_EQ(m.At(2600, HeartbeatAck{.sequence = 1}), "renew 5150");
}

TEST(AgentMachine, GivesUpAfterTheReconnectTimeout) {
  TracedMachine m;
  ToWaiting(m);
  m.At(1000, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(m.At(60'999, RendezvousDisconnected{.why = "refused"}), "-");
  EXPECT_EQ(m.At(61'000, TimePassed{}), "end 69");
  EXPECT_NE(m.verdict().reason.find("was lost for 60 s (refused)"), std::string::npos);
}

TEST(AgentMachine, ASilentStreamIsDroppedWhenTheLeaseIsOver) {
  TracedMachine m;
  ToWaiting(m);
  m.At(1000, TimePassed{});
  m.At(2000, TimePassed{});
  EXPECT_EQ(m.At(2500, TimePassed{}), "disconnect; show; connect");
}

TEST(AgentMachine, TellsFailuresAgainWithTheirAge) {
  TracedMachine m;
  ToFailedGone(m);
  m.At(300, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(m.At(310, RendezvousConnected{}), "send Attach running r1 highest 1");
  EXPECT_EQ(m.At(350, AttachedNow()), "show; renew 3060; send WorkerFailed r1 rank 2 age 150");
  EXPECT_EQ(m.At(360, StopOf(1)), "show; send StopDone r1");
}

TEST(AgentMachine, TellsItsSuccessAgain) {
  TracedMachine m;
  ToSucceededGone(m);
  m.At(300, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(m.At(310, RendezvousConnected{}), "send Attach running r1 succeeded highest 1");
  EXPECT_EQ(m.At(320, AttachedNow()), "show; renew 3060; send NodeSucceeded r1");
}

TEST(AgentMachine, OwesAStopDoneThatNoStreamCouldTake) {
  TracedMachine m;
  ToStopping(m);
  m.At(300, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(m.At(310, RendezvousConnected{}), "send Attach running r1 highest 1");
  EXPECT_EQ(m.At(315, GroupGone{.round = RoundId(1)}), "-");
  EXPECT_EQ(m.At(320, AttachedNow()), "show; renew 3060; send StopDone r1");
}

TEST(AgentMachine, ANewRoundWaitsUntilTheOldGroupIsGone) {
  TracedMachine m;
  ToStopping(m);
  EXPECT_EQ(m.At(300, StartOf(2, 1)), "-");
  EXPECT_EQ(m.At(400, GroupGone{.round = RoundId(1)}),
            "send StopDone r1; show; renew 2750; spawn r2");
}

TEST(AgentMachine, OlderRoundsAreNotStarted) {
  TracedMachine m;
  ToStopping(m);
  m.At(300, GroupGone{.round = RoundId(1)});
  m.At(310, StartOf(5));
  m.At(320, StopOf(5));
  m.At(330, GroupGone{.round = RoundId(5)});
  EXPECT_EQ(m.At(340, StartOf(4)), "-");
}

TEST(AgentMachine, AFreshLifeFollowsWhenItWasReplaced) {
  TracedMachine m;
  ToSuperseded(m);
  Incarnation before = m.machine().incarnation();
  EXPECT_EQ(m.At(310, GroupGone{.round = RoundId(1)}), "connect");
  EXPECT_EQ(m.At(320, RendezvousConnected{}), "send Attach highest 1");
  EXPECT_EQ(std::get<Attach>(std::get<SendToRendezvous>(m.effects()[0]).message).incarnation,
            before);
  m.At(330, Refused{.code = RefusalCode::kSuperseded, .message = "again"});
  EXPECT_NE(m.machine().incarnation(), before);
}

TEST(AgentMachine, EachSecondSignalKills) {
  TracedMachine m;
  ToLeaving(m);
  EXPECT_EQ(m.At(400, StopRequested{.signal = SIGINT}), "stop r1 signal 9 grace 0");
  EXPECT_EQ(m.At(410, StopRequested{.signal = SIGINT}), "-");
  EXPECT_EQ(m.At(420, GroupGone{.round = RoundId(1)}),
            "send Leave stopped by SIGINT; disconnect; end 130");
}

TEST(AgentMachine, KeepsTheGuardianQuietWhileAnEndedJobsWorkersFinish) {
  TracedMachine m;
  ToEnding(m);
  m.At(310, RendezvousDisconnected{.why = "closed"});
  EXPECT_EQ(m.wakeup_ms(), 1300);
  EXPECT_EQ(m.At(1300, TimePassed{}), "renew 3800");
  EXPECT_EQ(m.At(2600, TimePassed{}), "renew 5100");
  EXPECT_EQ(m.At(2700, GroupGone{.round = RoundId(1)}), "end 5");
  EXPECT_EQ(m.wakeup_ms(), -1);
}

TEST(AgentMachine, RankZerosShardWaitsForTheGrantAndItsCommitUntilItIsNoted) {
  TracedMachine m;
  ToRunning(m);
  Commit commit{.step = 50, .directory = "/c/50"};
  EXPECT_EQ(
      m.At(200, WorkerReportedShard{{.world = WorldOf(1), .rank = Rank(0), .commit = commit}}),
      "send ShardReport 50");
  EXPECT_EQ(m.At(210, CommitGranted{.world = WorldOf(1), .commit = commit}),
            "grant rank 0 step 50");
  EXPECT_EQ(m.At(220, WorkerCommitted{{.world = WorldOf(1), .commit = commit}}),
            "send CommitDone 50");
  EXPECT_EQ(m.At(230, CommitNoted{.world = WorldOf(1), .commit = commit}), "grant rank 0 step 50");
}

TEST(AgentMachine, PendingCommitsAreRefusedWhenTheRoundEnds) {
  TracedMachine m;
  ToRunning(m);
  Commit commit{.step = 50, .directory = "/c/50"};
  m.At(200, WorkerReportedShard{{.world = WorldOf(1), .rank = Rank(0), .commit = commit}});
  EXPECT_EQ(m.At(210, StopOf(1)),
            "show; refuse rank 0 step 50; abort r1 culprit 0; stop r1 signal 15 grace 30000");
  // A grant that crossed the stop is void.
  EXPECT_EQ(m.At(220, CommitGranted{.world = WorldOf(1), .commit = commit}), "-");
}

TEST(AgentMachine, UnkillableProcessesAreNamedAndGivenUpOn) {
  TracedMachine m;
  ToStopping(m);
  EXPECT_EQ(m.At(300, GroupGone{.round = RoundId(1), .unkillable = "4711 (python3)"}),
            "show; send StopDone r1");
  EXPECT_NE(m.shown().find("stuck in the kernel: 4711 (python3)"), std::string::npos);
}
}  // namespace
}  // namespace muster::agent
