// Single rules of a job that no story tells.
#include "rendezvous/core/job_machine.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

JobStory RunningPair(JobStory::Options options = {}) {
  JobStory story(options);
  story.Attach("a");
  story.Attach("b");
  if (story.machine().state() == JobState::kClosing) story.Lapse(options.last_call_ms);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  return story;
}

TEST(JobMachine, AHeartbeatIsAcknowledgedWithItsNumber) {
  JobStory story = RunningPair();
  story.Send("a", Heartbeat{42});
  ASSERT_EQ(story.last_effects().size(), 1u);
  const auto& send = std::get<SendMessage>(story.last_effects()[0]);
  EXPECT_EQ(std::get<HeartbeatAck>(send.message).sequence, 42u);
}

TEST(JobMachine, EveryReceivedEventIsHandledBeforeAnyoneExpires) {
  JobStory story = RunningPair();
  story.Silence("b");
  story.Lapse(2999);
  story.Silence("b", false);
  story.Lapse(1);  // the heartbeat comes in the very instant of the expiry, before TimePassed
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobMachine, AStallOfThisProcessRestartsEveryLease) {
  JobStory story = RunningPair();
  StepInput input;
  input.now = story.now() + std::chrono::seconds(30);
  story.machine().Step(input, TimePassed{});
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  // From then on silence counts again.
  for (int i = 0; i < 4; ++i) {
    input.now = story.machine().NextWakeup();
    story.machine().Step(input, TimePassed{});
  }
  EXPECT_NE(story.machine().state(), JobState::kRunning);
}

TEST(JobMachine, AfterAStallThoseWhoGaveUpOnItHaveTimeToComeBack) {
  JobStory story = RunningPair();
  StepInput input;
  input.now = story.now() + std::chrono::seconds(30);
  story.machine().Step(input, SessionEnded{story.session("b")});
  // What is due is served after what had arrived.
  story.machine().Step(input, TimePassed{});
  // 250 ms between two tries and the usual grace.
  input.now = input.now + std::chrono::milliseconds(340);
  story.machine().Step(input, TimePassed{});
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  input.now = input.now + std::chrono::milliseconds(20);
  story.machine().Step(input, TimePassed{});
  EXPECT_NE(story.machine().state(), JobState::kRunning);
}

TEST(JobMachine, WhileAgentsAreAttachedItWakesEveryThirdOfALease) {
  JobStory story = RunningPair();
  EXPECT_LE(story.machine().NextWakeup() - story.now(), std::chrono::seconds(1));
  JobStory empty({});
  EXPECT_TRUE(empty.machine().NextWakeup().IsNever());
}

TEST(JobMachine, TwoLossesAtOnceAreOneStop) {
  JobStory story({.min = 1, .max = 3});
  for (const char* agent : {"a", "b", "c"}) story.Attach(agent);
  story.Break("b");
  story.Break("c");
  story.Lapse(150);
  EXPECT_EQ(story.CountOf<StopRound>("a"), 1);
  story.StopDone("a");
  EXPECT_EQ(story.Last<StartRound>("a")->world.round, RoundId(2));
}

TEST(JobMachine, ALeaveWhileStoppingCausesNoSecondStop) {
  JobStory story({.min = 1, .max = 3});
  for (const char* agent : {"a", "b", "c"}) story.Attach(agent);
  story.Leave("b");
  story.Leave("c");
  EXPECT_EQ(story.CountOf<StopRound>("a"), 1);
  story.StopDone("a");
  story.Lapse(500);
  EXPECT_EQ(story.Last<StartRound>("a")->group_world_size, 1);
  EXPECT_EQ(story.Last<StartRound>("a")->restarts_charged, 0);
}

TEST(JobMachine, AProgramThatCannotStartEndsTheJobWhateverTheBudget) {
  JobStory story = RunningPair({.max_restarts = 5});
  WorkerFailure failure;
  failure.exit.code = 127;
  failure.failed_to_start = true;
  story.Send("b", WorkerFailed{story.world("b"), failure});
  story.StopDone("a");
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "not before all have acknowledged";
  story.StopDone("b");
  ASSERT_NE(story.Last<JobEnded>("a"), nullptr);
  EXPECT_EQ(story.Last<JobEnded>("a")->verdict.exit_code, 127);
  EXPECT_EQ(story.Last<JobEnded>("a")->verdict.failures[0].node_name, "b");
}

TEST(JobMachine, AShortageOfTheSystemIsChargedAndRetried) {
  JobStory story = RunningPair({.max_restarts = 1});
  WorkerFailure failure;
  failure.exit.code = 71;
  failure.failed_to_start = true;
  story.Send("b", WorkerFailed{story.world("b"), failure});
  story.StopDone("a");
  story.StopDone("b");
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  EXPECT_EQ(story.Last<StartRound>("a")->restarts_charged, 1);
}

TEST(JobMachine, TheRecordOfAFailedJobNamesItOnce) {
  JobStory story = RunningPair({.max_restarts = 0, .shows_records = true});
  story.WorkerFails("b", 2, 1);
  story.StopDone("a");
  story.StopDone("b");
  const std::string trace = story.Trace();
  EXPECT_NE(trace.find("# job j: failed: worker rank 2"), std::string::npos) << trace;
}

TEST(JobMachine, AFailureDuringAnotherStopIsNotCharged) {
  JobStory story = RunningPair({.min = 1, .max = 3, .max_restarts = 0});
  story.Attach("c");
  story.WorkerFails("b", 2, 1);  // it died of the stop
  story.StopDone("a");
  story.StopDone("b");
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  EXPECT_EQ(story.Last<StartRound>("c")->restarts_charged, 0);
}

TEST(JobMachine, AnAcknowledgementOfAnOldRoundIsNone) {
  JobStory story = RunningPair();
  const World first = story.world("a");
  story.WorkerFails("a", 0, 1);
  story.StopDone("a");
  story.StopDone("b");
  const World second = story.world("a");
  ASSERT_NE(second.round, first.round);
  story.Send("a", WorkerFailed{first, {}});
  story.Send("a", NodeSucceeded{first});
  story.Send("b", NodeSucceeded{first});
  EXPECT_EQ(story.machine().state(), JobState::kRunning) << "stale messages change nothing";
  story.Break("b");
  story.Lapse(200);
  story.Send("a", StopDone{first, 7});
  story.Send("a", StopDone{World{second.round, first.id}, 7});
  EXPECT_EQ(story.machine().state(), JobState::kStopping);
  story.Send("a", ShardReport{first, Rank(0), 1, {1, "/c"}});
  story.Send("a", CommitDone{first, {1, "/c"}});
  EXPECT_EQ(story.CountOf<CommitRefused>("a"), 2);
}

TEST(JobMachine, OneWhoComesBackWhileStoppingIsToldToStopAgain) {
  JobStory story = RunningPair();
  story.WorkerFails("a", 0, 1);
  story.Break("b");
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.CountOf<StopRound>("b"), 2);
  story.StopDone("a");
  story.StopDone("b");
  EXPECT_EQ(story.Last<StartRound>("b")->restarts_charged, 1);
}

TEST(JobMachine, OneWhoComesBackWithoutWorkersHasAcknowledgedTheStop) {
  JobStory story = RunningPair();
  story.WorkerFails("a", 0, 1);
  story.Break("b");
  story.Attach("b");
  story.StopDone("a");
  EXPECT_EQ(story.Last<StartRound>("b")->world.round, RoundId(2));
}

TEST(JobMachine, AnAgentThatLostItsWorkersMayStillSayWhy) {
  for (const bool says_why : {false, true}) {
    JobStory story = RunningPair();
    story.Attach("b");
    ASSERT_EQ(story.machine().state(), JobState::kStopping);
    if (says_why) story.WorkerFails("b", 2, 1);
    story.StopDone("a");
    story.StopDone("b");
    EXPECT_EQ(story.Last<StartRound>("a")->restarts_charged, says_why ? 1 : 0);
  }
}

TEST(JobMachine, WhatWentDownWithTheStreamIsSentAgainWhileRunning) {
  JobStory story = RunningPair();
  story.Send("a", ShardReport{story.world("a"), Rank(0), 1, {5, "/c"}});
  story.Attach("a", {.is_running = true});
  EXPECT_EQ(story.CountOf<CommitGranted>("a"), 2);
  story.Send("a", CommitDone{story.world("a"), {5, "/c"}});
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.CountOf<CommitNoted>("b"), 2);
  story.Succeed("b");
  story.Attach("b", {.is_running = true, .has_succeeded = true});
  EXPECT_EQ(story.CountOf<SuccessNoted>("b"), 2);
  story.Attach("a", {.is_running = true, .has_succeeded = true});
  EXPECT_EQ(story.machine().state(), JobState::kSucceeded);
  story.Attach("b", {.is_running = true, .has_succeeded = true});
  EXPECT_TRUE(std::holds_alternative<JobEnded>(story.told("b").back()));
}

TEST(JobMachine, ANewSessionOfAnAgentEndsItsOldOne) {
  JobStory story = RunningPair();
  const SessionId old = story.session("b");
  story.Attach("b", {.is_running = true});
  const auto& effects = story.last_effects();
  EXPECT_TRUE(std::any_of(effects.begin(), effects.end(), [&](const JobEffect& effect) {
    const auto* end = std::get_if<EndSession>(&effect);
    return end != nullptr && end->session == old;
  }));
  story.Feed(SessionEnded{old});
  story.Lapse(500);
  EXPECT_EQ(story.machine().state(), JobState::kRunning) << "the end of the old one means nothing";
}

TEST(JobMachine, SparesAreToldOnceAndTakenInWhenAPlaceIsFree) {
  JobStory story = RunningPair();
  story.Attach("c");
  story.Attach("d");
  story.Lapse(10'000);
  EXPECT_EQ(story.CountOf<Notice>("c"), 1);
  story.Leave("a");
  story.StopDone("b");
  story.Lapse(500);
  EXPECT_EQ(story.Last<StartRound>("c")->group_rank, GroupRank(0));
  EXPECT_EQ(story.Last<StartRound>("b")->group_rank, GroupRank(1)) << "survivors keep their place";
  EXPECT_EQ(story.CountOf<StartRound>("d"), 0);
}

TEST(JobMachine, NobodyIsTakenInOnceANodeHasFinished) {
  JobStory story = RunningPair({.min = 2, .max = 3});
  story.Succeed("a");
  story.Attach("c");
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  story.Succeed("b");
  EXPECT_TRUE(story.Last<JobEnded>("c")->verdict.succeeded);
}

TEST(JobMachine, AFlappingNodeDoesNotHoldTheRoundOpen) {
  JobStory story({.min = 2, .max = 4, .last_call_ms = 5000});
  story.Attach("a");
  story.Attach("b");
  for (int i = 1; i <= 6; ++i) {
    story.Lapse(400);
    story.Leave("b");
    story.Lapse(400);
    story.Attach("b", {.life = i});
  }
  story.Lapse(200);
  EXPECT_EQ(story.machine().state(), JobState::kRunning) << "5 s after MIN was first reached";
}

TEST(JobMachine, OtherTermsAreRefusedAndAnEmptyJobForgetsIts) {
  JobStory story({.min = 2, .max = 2});
  story.Attach("a");
  story.Attach("b", {.version = "2"});
  EXPECT_EQ(story.Last<Refused>("b")->code, RefusalCode::kDisagrees);
  EXPECT_EQ(story.Last<Refused>("b")->message,
            "job j: node b has muster 2, but node a opened the job with 1; install the same "
            "version on every node");
  story.Leave("a");
  story.Attach("b", {.version = "2"});
  EXPECT_EQ(story.CountOf<Attached>("b"), 1);
}

TEST(JobMachine, AStaticJobWithoutNodeRankIsRefused) {
  JobStory story({.is_static = true});
  story.Attach("a");
  EXPECT_EQ(story.Last<Refused>("a")->code, RefusalCode::kDisagrees);
}

TEST(JobMachine, ANewcomerTakesTheRankOfASilentHolder) {
  JobStory story({.is_static = true});
  story.Attach("a", {.node_rank = 0});
  story.Silence("a");
  story.Lapse(2000);
  story.Attach("b", {.node_rank = 0});
  EXPECT_TRUE(story.told("b").empty()) << "held until the holder's lease decides";
  story.Lapse(1100);
  // Its Attach is too old to count a lease from: it is sent away to attach again.
  EXPECT_EQ(story.session("b"), SessionId(0));
  story.Attach("b", {.node_rank = 0});
  EXPECT_EQ(story.CountOf<Attached>("b"), 1);
  story.Attach("c", {.node_rank = 1});
  EXPECT_EQ(story.Last<StartRound>("b")->group_rank, GroupRank(0));
}

TEST(JobMachine, AfterARestartTheNewerWorldWinsAndTheOlderIsStopped) {
  JobStory story({.min = 1, .max = 2, .last_call_ms = 100});
  story.Attach("a");
  story.Lapse(200);  // a alone in round 1
  story.Silence("a");
  story.Lapse(3100);  // lost
  story.Attach("b");
  story.Lapse(200);  // b alone in round 2
  ASSERT_EQ(story.world("b").round, RoundId(2));
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  ASSERT_EQ(story.machine().state(), JobState::kRunning) << "complete as far as is known";
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.Last<Refused>("a")->code, RefusalCode::kSuperseded);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  EXPECT_EQ(story.machine().Status(story.now()).world, story.world("b"));
}

// Of the terms that stories have by default.
muster::Attach BareAttach(const std::string& node) {
  muster::Attach attach;
  attach.incarnation.bytes = {7};
  attach.node_name = node;
  attach.terms.run_id = "j";
  attach.terms.min_nodes = 2;
  attach.terms.max_nodes = 2;
  attach.terms.max_restarts = 1;
  attach.terms.join_timeout = std::chrono::seconds(60);
  attach.terms.last_call_timeout = std::chrono::seconds(5);
  attach.terms.version = "1";
  return attach;
}

TEST(JobMachine, ANewerWorldThatCantBeOfTheJobLeavesTheRecoveredOneAlone) {
  JobStory story = RunningPair();
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.WorkerFails("a", 0, 3);
  story.StopDone("a");
  muster::Attach attach = BareAttach("c");
  attach.running = RunningWorld{.world = {RoundId(9), WorldId{.bytes = {9}}},
                                .group_rank = GroupRank(0),
                                .group_world_size = 5,
                                .first_rank = Rank(0),
                                .world_size = 10,
                                .last_commit = std::nullopt};
  story.Feed(SessionMessage{SessionId(50), attach});
  EXPECT_EQ(story.Last<Refused>("a"), nullptr);
  EXPECT_EQ(story.machine().state(), JobState::kStopping);
  story.Attach("b", {.is_running = true});
  story.StopDone("b");
  EXPECT_EQ(story.machine().Status(story.now()).restarts_charged, 1);
}

TEST(JobMachine, ARestartedRendezvousLearnsBudgetCommitAndRoundFromThoseWhoRunNothing) {
  JobStory story({.highest_round = 3});
  story.Attach("a");
  muster::Attach attach = BareAttach("b");
  attach.highest_round = RoundId(9);
  attach.restarts_charged = 1;
  attach.last_commit = Commit{70, "/c"};
  story.Feed(SessionMessage{SessionId(50), attach});
  const StartRound& start = *story.Last<StartRound>("a");
  EXPECT_EQ(start.world.round, RoundId(10));
  EXPECT_EQ(start.attempt, 9);
  EXPECT_EQ(start.restarts_charged, 1);
  EXPECT_EQ(start.resume, attach.last_commit);
}

TEST(JobMachine, AMemberWithoutWorkersProvesThatARecoveredRoundIsIncomplete) {
  JobStory story = RunningPair();
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  EXPECT_EQ(story.machine().state(), JobState::kRecovering);
  story.Attach("b");
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "long before reconnect_timeout";
  EXPECT_EQ(story.Last<StopRound>("a")->reason,
            "round 1 is incomplete: node b came back without its workers");
  story.StopDone("a");
  EXPECT_EQ(story.Last<StartRound>("b")->world.round, RoundId(2));
}

// Seen in a storm: two nodes were killed while the rendezvous was away, and a third reported that
// its workers had died of it.
TEST(JobMachine, ARecoveredRoundThatStopsWaitsForTheMissingNoLongerThanALease) {
  JobStory story = RunningPair({.startup_quiet_ms = 1000});
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.WorkerFails("a", 0, 1);
  story.StopDone("a");
  story.Attach("c", {.highest_round = 0});
  story.Lapse(2999);
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "b may still be on its way";
  story.Lapse(1);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  EXPECT_EQ(story.Last<StartRound>("c")->world.round, RoundId(2));
  EXPECT_EQ(story.Last<StartRound>("c")->restarts_charged, 0) << "b's loss may be the cause";
  // It has to stop what it runs, should it have lived on.
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.Last<Refused>("b")->code, RefusalCode::kSuperseded);
}

TEST(JobMachine, ARecoveredRoundThatStopsLaterWaitsForNobodyWhoIsMissing) {
  JobStory story = RunningPair({.min = 1, .max = 2});
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.Lapse(10'000);
  EXPECT_EQ(story.machine().state(), JobState::kRecovering) << "the world may be whole";
  story.WorkerFails("a", 0, 1);
  story.StopDone("a");
  story.Lapse(1);
  EXPECT_EQ(story.Last<StartRound>("a")->world.round, RoundId(2));
}

TEST(JobMachine, ACheckpointThatALaterRoundKnewIsNotTakenBack) {
  JobStory story({.min = 1, .max = 1});
  story.Attach("a");
  // The rendezvous came back empty, formed a round without knowing, and then b tells.
  story.Attach("b", {.last_commit_step = 30, .highest_round = 4});
  story.Send("a", CommitDone{story.world("a"), {10, "/c/10"}});
  EXPECT_EQ(story.Last<CommitNoted>("a")->commit.step, 30);
}

TEST(JobMachine, ARoundThatWentBackBehindADamagedCheckpointCommitsLowerSteps) {
  JobStory story = RunningPair();
  story.Send("a", CommitDone{story.world("a"), {500, "/c/500"}});
  story.WorkerFails("b", 2, 1);
  story.StopDone("a");
  story.StopDone("b");
  ASSERT_EQ(story.Last<StartRound>("a")->resume->step, 500);
  story.Send("a", CommitDone{story.world("a"), {450, "/c/450"}});
  EXPECT_EQ(story.Last<CommitNoted>("a")->commit.step, 450);
  story.Send("a", CommitDone{story.world("a"), {440, "/c/440"}});
  EXPECT_EQ(story.Last<CommitNoted>("a")->commit.step, 450) << "within a round only forward";
}

TEST(JobMachine, ALateRepetitionOfACommitDoesNotUndoANewerOne) {
  JobStory story = RunningPair();
  story.Send("a", CommitDone{story.world("a"), {20, "/c/20"}});
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true, .last_commit_step = 20});
  story.Attach("b", {.is_running = true});
  story.Send("a", CommitDone{story.world("a"), {10, "/c/10"}});
  EXPECT_EQ(story.machine().Status(story.now()).last_commit->step, 20);
}

TEST(JobMachine, AFailureBesideANodeThatLeavesIsNotCharged) {
  JobStory story = RunningPair({.min = 1, .max = 2});
  story.WorkerFails("a", 0, 1);
  story.Leave("b");
  story.StopDone("a");
  EXPECT_EQ(story.Last<StartRound>("a")->restarts_charged, 0);
}

// Seen in a storm: guardians were killed on enough nodes, and the job gave itself up.
TEST(JobMachine, ANodeThatIsLostBelowMinIsWaitedForThoughItSaysGoodbye) {
  JobStory story = RunningPair();
  story.Send("b", Leave{.reason = "its guardian ended", .is_lost = true});
  const StopRound& stop = *story.Last<StopRound>("a");
  EXPECT_EQ(stop.cause, StopCause::kPeerLost) << "a's workers may be blocked in a collective";
  EXPECT_EQ(stop.culprit, Rank(2));
  EXPECT_EQ(stop.reason, "lost node b: its guardian ended");
  story.StopDone("a");
  story.Lapse(1000);
  story.Attach("b", {.life = 1});
  EXPECT_EQ(story.Last<StartRound>("a")->world.round, RoundId(2));
  EXPECT_EQ(story.Last<StartRound>("a")->restarts_charged, 0);
}

TEST(JobMachine, ANodeThatIsLostForGoodEndsTheRecoveryOfItsRound) {
  JobStory story = RunningPair();
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.Send("a", Leave{.reason = "its guardian ended", .is_lost = true});
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "long before reconnect_timeout";
  story.Attach("b", {.is_running = true});
  story.StopDone("b");
  story.Attach("a", {.life = 1, .highest_round = 0});
  EXPECT_EQ(story.Last<StartRound>("b")->world.round, RoundId(2));
}

TEST(JobMachine, NoCommitIsGrantedBeforeTheWorldIsCompleteAgain) {
  JobStory story = RunningPair();
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.Send("a", ShardReport{story.world("a"), Rank(0), 1, {5, "/c"}});
  EXPECT_EQ(story.CountOf<CommitGranted>("a"), 0);
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.CountOf<CommitGranted>("a"), 1);
}

TEST(JobMachine, AWorldBehindARoundThatOthersHaveSeenIsNotTakenUpAgain) {
  JobStory story = RunningPair({.max_restarts = 5});
  story.RestartRendezvous();
  story.Attach("a", {.highest_round = 2});
  story.Attach("b", {.is_running = true});
  ASSERT_NE(story.Last<Refused>("b"), nullptr);
  EXPECT_EQ(story.Last<Refused>("b")->code, RefusalCode::kSuperseded);
  EXPECT_EQ(story.machine().state(), JobState::kGathering);
}

TEST(JobMachine, StatusTellsTheNodesAndTheRound) {
  JobStory story = RunningPair();
  story.Attach("c");
  const JobStatus status = story.machine().Status(story.now());
  EXPECT_EQ(status.world.round, RoundId(1));
  EXPECT_EQ(status.max_restarts, 1);
  ASSERT_EQ(status.nodes.size(), 3u);
  for (const NodeStatus& node : status.nodes)
    EXPECT_TRUE(story.machine().HasMember(node.incarnation)) << node.node_name;
  EXPECT_EQ(status.nodes[1].node_name, "b");
  EXPECT_EQ(status.nodes[1].group_rank, GroupRank(1));
  EXPECT_EQ(status.nodes[2].group_rank, std::nullopt);
  EXPECT_FALSE(story.machine().IsDone());
}

// Each message that was handled before the timer used to put the next one off: in a job of many
// nodes there is always another one.
TEST(JobMachine, ATimerThatIsDueIsNotPutOffByOtherEvents) {
  JobStory story({.min = 1, .max = 3});
  for (const char* agent : {"a", "b", "c"}) story.Attach(agent);
  story.Feed(NodeDrained{{.bytes = {1, 'b', 0}}});
  for (int i = 0; i < 10; ++i) {
    story.StandStill(300);
    for (const char* agent : {"a", "b", "c"}) story.Send(agent, Heartbeat{1});
  }
  EXPECT_LE(story.machine().NextWakeup(), story.now());
  story.Feed(TimePassed{});
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "the node leaves";
  EXPECT_GT(story.machine().NextWakeup(), story.now()) << "it was served";
}

TEST(JobMachine, NorIsTheEndOfTheQuietTimeAfterARestart) {
  JobStory story({.min = 2, .max = 2, .startup_quiet_ms = 1000});
  for (const char* agent : {"a", "b"}) story.Attach(agent);
  story.Lapse(1000);
  story.RestartRendezvous();
  for (const char* agent : {"a", "b"}) story.Attach(agent, {.is_running = true});
  story.WorkerFails("a", 0, 1);
  for (const char* agent : {"a", "b"}) story.StopDone(agent);
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "a newer world may still report";
  story.StandStill(1500);
  for (const char* agent : {"a", "b"}) story.Send(agent, Heartbeat{1});
  EXPECT_LE(story.machine().NextWakeup(), story.now());
  story.Feed(TimePassed{});
  EXPECT_EQ(story.Last<StartRound>("a")->world.round, RoundId(2));
}

}  // namespace
}  // namespace muster::rendezvous
