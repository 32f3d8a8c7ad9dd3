// Nodes that go in order: the checkpoint that all ranks agree on before, who is taken together, and
// when a newcomer gets its place.
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/session_messages.h"
#include "gtest/gtest.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

void Preempt(JobStory& story, const std::string& agent) {
  story.Send(agent, LeaveRequest{story.world(agent), "preempted (SIGTERM)"});
}

void Drain(JobStory& story, char agent) {
  story.Feed(NodeDrained{{.bytes = {1, static_cast<uint8_t>(agent), 0}}});
}

void Commit(JobStory& story, const std::string& agent, int64_t step) {
  story.Send(agent, CommitDone{story.world(agent), {step, "/c"}});
}

// How the agent was let go; none if it wasn't.
std::optional<Verdict> Farewell(JobStory& story, const std::string& agent) {
  if (story.told(agent).empty()) return std::nullopt;
  const auto* ended = std::get_if<JobEnded>(&story.told(agent).back());
  return ended == nullptr ? std::nullopt : std::optional(ended->verdict);
}

// Three nodes run, all of whose workers can be asked to save.
void RunThree(JobStory& story) {
  for (const char* agent : {"a", "b", "c"}) story.Attach(agent);
  for (const char* agent : {"a", "b", "c"}) story.CanSave(agent);
  story.Trace();
}

// All ranks agree on step 7.
void Agree(JobStory& story) {
  story.Send("a", CheckpointStep{story.world("a"), 7});
  for (const char* agent : {"a", "b", "c"}) {
    story.Send(agent, CheckpointStepKnown{story.world(agent), 7});
  }
}

TEST(JobLeave, APreemptedNodeGoesAfterACheckpointThatAllAgreeOn) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  story.Lapse(100);
  Preempt(story, "b");
  story.Lapse(100);
  story.Send("a", CheckpointStep{story.world("a"), 7});
  story.Send("b", CheckpointStepKnown{story.world("b"), 7});
  story.Send("a", CheckpointStepKnown{story.world("a"), 7});
  story.Send("c", CheckpointStepKnown{story.world("c"), 7});
  story.Lapse(100);
  Commit(story, "a", 7);
  story.Lapse(1000);
  for (const char* agent : {"c", "b", "a"}) story.StopDone(agent);
  EXPECT_EQ(story.Trace(), R"(
   100 b> LeaveRequest: preempted (SIGTERM)
   100   a< CheckpointWanted
   200 a> CheckpointStep 7
   200   a< CheckpointAt 7
   200   b< CheckpointAt 7
   200   c< CheckpointAt 7
   200 b> CheckpointStepKnown 7
   200 a> CheckpointStepKnown 7
   200 c> CheckpointStepKnown 7
   200   a< CheckpointAgreed 7
   300 a> CommitDone 7
   300   b< Noted 7
   300   c< Noted 7
   600   a< Stop round 1 (membership, culprit -1): node b leaves: preempted (SIGTERM); step 7 is
               saved
   600   b< Stop round 1 (membership, culprit -1): node b leaves: preempted (SIGTERM); step 7 is
               saved
   600   c< Stop round 1 (membership, culprit -1): node b leaves: preempted (SIGTERM); step 7 is
               saved
   600   a< Noted 7
  1300 c> StopDone round 1
  1300 b> StopDone round 1
  1300 a> StopDone round 1
  1300   round 1 is over
  1300   b< JobEnded code 75: job j: node b was preempted (SIGTERM) and left after the checkpoint
               of step 7; run it again to go on
  1300   b< end of stream
  1300   round 2 begins: 2 nodes, 4 workers
  1300   a< Start round 2: node 0 of 2, ranks from 0 of 4, master a.net, attempt 1, charged 0,
               resume 7
  1300   c< Start round 2: node 1 of 2, ranks from 2 of 4, master a.net, attempt 1, charged 0,
               resume 7
)");
}

TEST(JobLeave, ALateRepetitionDoesntLetRankZeroGoOn) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  Preempt(story, "b");
  Agree(story);
  const ShardReport shard{story.world("a"), Rank(0), 1, {7, "/c"}};
  story.Send("a", shard);
  Commit(story, "a", 7);
  story.Send("a", shard);
  Commit(story, "a", 7);
  Commit(story, "a", 6);
  EXPECT_EQ(story.CountOf<CommitNoted>("a"), 0);
  story.Lapse(500);
  EXPECT_EQ(story.CountOf<StopRound>("a"), 1);
  EXPECT_EQ(story.CountOf<CommitNoted>("a"), 1);
}

TEST(JobLeave, WhoFollowsIsPartOfTheSameEvent) {
  JobStory story({.min = 1, .max = 3});
  RunThree(story);
  Preempt(story, "b");
  Agree(story);
  story.Lapse(300);
  Commit(story, "a", 7);
  Drain(story, 'c');
  story.Lapse(300);
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
  EXPECT_EQ(Farewell(story, "b")->exit_code, 75);
  EXPECT_EQ(Farewell(story, "c")->exit_code, 75);
  EXPECT_NE(Farewell(story, "c")->reason.find("was drained"), std::string::npos);
  EXPECT_EQ(story.world("a").round, RoundId(2)) << "one re-forming for both";
}

TEST(JobLeave, BelowMinAllTakeTheCheckpointAndEndWith75) {
  JobStory story({.min = 3, .max = 3});
  RunThree(story);
  Drain(story, 'b');
  Agree(story);
  Commit(story, "a", 7);
  // Nobody else has to be waited for: too few are left as it is.
  for (const char* agent : {"a", "b", "c"}) EXPECT_EQ(story.CountOf<StopRound>(agent), 1) << agent;
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
  for (const char* agent : {"a", "b", "c"}) {
    ASSERT_TRUE(Farewell(story, agent)) << agent;
    EXPECT_EQ(Farewell(story, agent)->exit_code, 75) << agent;
  }
  EXPECT_NE(Farewell(story, "a")->reason.find("node b left: drained"), std::string::npos)
      << Farewell(story, "a")->reason;
  EXPECT_EQ(story.machine().state(), JobState::kFailed);
}

TEST(JobLeave, AJobOfOneNodeEndsWith75) {
  JobStory story({.min = 1, .max = 1});
  story.Attach("a");
  story.CanSave("a");
  Preempt(story, "a");
  story.Send("a", CheckpointStep{story.world("a"), 7});
  story.Send("a", CheckpointStepKnown{story.world("a"), 7});
  Commit(story, "a", 7);
  story.StopDone("a");
  EXPECT_EQ(Farewell(story, "a")->exit_code, 75);
  EXPECT_EQ(story.machine().state(), JobState::kFailed);
}

TEST(JobLeave, WhereNotAllCanSaveNobodyIsAsked) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  story.CanSave("c", false);
  Preempt(story, "b");
  EXPECT_EQ(story.CountOf<CheckpointWanted>("a"), 0);
  EXPECT_EQ(story.machine().state(), JobState::kRunning) << "others may follow";
  story.Lapse(500);
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
  EXPECT_EQ(Farewell(story, "b")->exit_code, 143);
  EXPECT_NE(Farewell(story, "b")->reason.find("without a checkpoint"), std::string::npos);
  EXPECT_EQ(story.world("a").round, RoundId(2));
}

TEST(JobLeave, ADrainedNodeEndsWith75AlsoWithoutACheckpoint) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  story.CanSave("c", false);
  Drain(story, 'b');
  story.Lapse(500);
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
  EXPECT_EQ(Farewell(story, "b")->exit_code, 75);
}

TEST(JobLeave, ACheckpointThatDoesntComeIsGivenUp) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  Drain(story, 'b');
  story.Lapse(29'900);
  EXPECT_EQ(story.CountOf<StopRound>("b"), 0);
  story.Lapse(200);
  EXPECT_EQ(story.CountOf<StopRound>("b"), 1);
}

TEST(JobLeave, WhoHasNoPartInTheRoundGoesAtOnce) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  story.Attach("d");
  const Incarnation d{.bytes = {1, 'd', 0}};
  EXPECT_TRUE(story.machine().HasMember(d));
  Drain(story, 'd');
  EXPECT_EQ(Farewell(story, "d")->exit_code, 75);
  EXPECT_FALSE(story.machine().HasMember(d));
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobLeave, ANewcomerThatGoesBelowMinDoesntEndTheWaitForWhoWasLost) {
  for (bool is_drained : {true, false}) {
    JobStory story({.min = 3, .max = 4, .last_call_ms = 0});
    RunThree(story);
    for (const char* agent : {"b", "c"}) story.Break(agent);
    story.Lapse(200);
    story.StopDone("a");
    story.Attach("e");
    ASSERT_EQ(story.machine().state(), JobState::kGathering);
    if (is_drained) {
      Drain(story, 'e');
    } else {
      story.Leave("e");
    }
    EXPECT_EQ(story.machine().state(), JobState::kGathering) << "as before e came";
    EXPECT_FALSE(Farewell(story, "a")) << Farewell(story, "a")->reason;
    // The control: one of those that ran.
    story.Attach("f");
    story.Leave("a");
    EXPECT_EQ(story.machine().state(), JobState::kFailed) << story.Trace();
  }
}

TEST(JobLeave, AFailureMeanwhileIsChargedAndTheyGo) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  Preempt(story, "b");
  story.WorkerFails("c", 4, 1);
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
  EXPECT_EQ(Farewell(story, "b")->exit_code, 143);
  EXPECT_EQ(story.machine().Status(story.now()).restarts_charged, 1);
  EXPECT_EQ(story.world("a").round, RoundId(2));
  EXPECT_EQ(story.world("b").round, RoundId(1));
}

TEST(JobLeave, ALossMeanwhileIsFreeAndTheyGo) {
  JobStory story({.min = 1, .max = 3});
  RunThree(story);
  Preempt(story, "b");
  story.Break("c");
  story.Lapse(150);
  for (const char* agent : {"a", "b"}) story.StopDone(agent);
  EXPECT_EQ(Farewell(story, "b")->exit_code, 143);
  EXPECT_EQ(story.world("a").round, RoundId(2));
  EXPECT_EQ(story.machine().Status(story.now()).restarts_charged, 0);
}

TEST(JobLeave, ALossOfWhoWantedToGoLeavesNothingBehind) {
  JobStory story({.min = 1, .max = 3});
  RunThree(story);
  Preempt(story, "b");
  story.Break("b");
  story.Lapse(150);
  for (const char* agent : {"a", "c"}) story.StopDone(agent);
  EXPECT_EQ(story.world("a").round, RoundId(2));
  story.Lapse(60'000);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobLeave, WhoWasLostOnItsWayOutGetsNoPlaceAnyMore) {
  JobStory story({.min = 1, .max = 3});
  RunThree(story);
  Drain(story, 'b');
  story.Break("b");
  story.Lapse(150);
  for (const char* agent : {"a", "c"}) story.StopDone(agent);
  story.Attach("b");
  ASSERT_TRUE(Farewell(story, "b"));
  EXPECT_EQ(Farewell(story, "b")->exit_code, 75);
}

TEST(JobLeave, WhoMissedItsFarewellHearsItWhenItComesBack) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  story.CanSave("c", false);
  Drain(story, 'b');
  story.Lapse(500);
  story.StopDone("b");
  story.Break("b");
  for (const char* agent : {"a", "c"}) story.StopDone(agent);
  EXPECT_EQ(story.world("a").round, RoundId(2));
  story.Attach("b");
  EXPECT_EQ(Farewell(story, "b")->exit_code, 75);
  // Its next life is a newcomer like any other.
  story.Attach("b", {.life = 1});
  story.Lapse(100);
  for (const char* agent : {"a", "c"}) story.StopDone(agent);
  EXPECT_EQ(story.world("b").round, RoundId(3));
}

TEST(JobLeave, WhoComesBackInBetweenHearsWhatItMissed) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  story.Break("a");
  Preempt(story, "b");
  story.Attach("a", {.is_running = true});
  EXPECT_EQ(story.CountOf<CheckpointWanted>("a"), 1);
  story.Break("c");
  story.Send("a", CheckpointStep{story.world("a"), 7});
  story.Attach("c", {.is_running = true});
  EXPECT_EQ(story.CountOf<CheckpointAt>("c"), 1);
  story.Break("a");
  for (const char* agent : {"b", "c"}) {
    story.Send(agent, CheckpointStepKnown{story.world(agent), 7});
  }
  story.Attach("a", {.is_running = true});
  story.Send("a", CheckpointStepKnown{story.world("a"), 7});
  EXPECT_EQ(story.CountOf<CheckpointAgreed>("a"), 1);
}

TEST(JobLeave, ARestartedRendezvousTakesUpAnAgreementAndAsksAnew) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  Preempt(story, "b");
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.Send("a", CheckpointStep{story.world("a"), 7});
  EXPECT_EQ(story.CountOf<CheckpointAt>("a"), 1);
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.CountOf<CheckpointAt>("b"), 1);
  Preempt(story, "b");
  story.Attach("c", {.is_running = true});
  for (const char* agent : {"a", "b", "c"}) {
    story.Send(agent, CheckpointStepKnown{story.world(agent), 7});
  }
  EXPECT_EQ(story.CountOf<CheckpointAgreed>("a"), 1);
  Commit(story, "a", 7);
  story.Lapse(600);
  EXPECT_EQ(story.CountOf<StopRound>("a"), 1);
}

TEST(JobLeave, WhoHasFinishedNeedntKnowAndMayGo) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  Preempt(story, "b");
  story.Send("a", CheckpointStep{story.world("a"), 7});
  for (const char* agent : {"a", "b"}) {
    story.Send(agent, CheckpointStepKnown{story.world(agent), 7});
  }
  EXPECT_EQ(story.CountOf<CheckpointAgreed>("a"), 0);
  story.Succeed("c");
  EXPECT_EQ(story.CountOf<CheckpointAgreed>("a"), 1);
  story.Succeed("b");
  EXPECT_TRUE(Farewell(story, "b"));
  story.Succeed("a");
  EXPECT_EQ(story.machine().state(), JobState::kSucceeded);
}

TEST(JobLeave, ADrainOutlivesARestartOfTheRendezvous) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  Drain(story, 'b');
  EXPECT_EQ(story.CountOf<Drained>("b"), 1);
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.Attach("b", {.is_running = true, .is_drained = true});
  story.Attach("c", {.is_running = true});
  for (const char* agent : {"a", "b", "c"}) story.CanSave(agent);
  Agree(story);
  Commit(story, "a", 7);
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
  ASSERT_TRUE(Farewell(story, "b"));
  EXPECT_EQ(Farewell(story, "b")->exit_code, 75);
  EXPECT_EQ(story.world("a").round, RoundId(2));
}

TEST(JobLeave, ADrainedNodeThatMissedItIsToldOnItsNextStream) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  story.Break("b");
  Drain(story, 'b');
  EXPECT_EQ(story.CountOf<Drained>("b"), 0);
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.CountOf<Drained>("b"), 1);
  story.Attach("b", {.is_running = true, .is_drained = true});
  EXPECT_EQ(story.CountOf<Drained>("b"), 1) << "it knows";
}

TEST(JobLeave, ADrainedNodeThatComesWithoutWorkersIsLetGoAndGetsNoPlace) {
  JobStory story({.min = 2, .max = 2});
  story.Attach("a");
  story.Attach("b", {.is_drained = true});
  ASSERT_TRUE(Farewell(story, "b"));
  EXPECT_EQ(Farewell(story, "b")->exit_code, 75);
  EXPECT_EQ(story.CountOf<StartRound>("a"), 0);
  story.Attach("c");
  EXPECT_EQ(story.CountOf<StartRound>("a"), 1);
}

TEST(JobLeave, ADrainedNodeWhoseWorkersAreGoneBreaksUpTheRecoveredRoundAndGoes) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  Drain(story, 'b');
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.Attach("c", {.is_running = true});
  story.Attach("b", {.is_drained = true});
  ASSERT_TRUE(Farewell(story, "b"));
  EXPECT_EQ(Farewell(story, "b")->exit_code, 75);
  EXPECT_EQ(story.CountOf<StopRound>("a"), 1);
  story.StopDone("a");
  story.StopDone("c");
  story.Lapse(4000);
  EXPECT_EQ(story.world("a").round, RoundId(2));
  EXPECT_EQ(story.world("c").round, RoundId(2));
}

// The rendezvous restarts while the round stops for the drained node.
TEST(JobLeave, BelowMinADrainOverARestartEndsTheJobWith75) {
  for (bool is_drained_node_first : {true, false}) {
    JobStory story({.min = 2, .max = 2, .startup_quiet_ms = 1000});
    story.Attach("a");
    story.Attach("b");
    story.Lapse(1000);
    story.RestartRendezvous();
    if (is_drained_node_first) story.Attach("b", {.is_drained = true});
    story.Attach("a", {.is_running = true});
    if (!is_drained_node_first) story.Attach("b", {.is_drained = true});
    EXPECT_EQ(story.CountOf<StopRound>("a"), 1) << "long before the lease or reconnect_timeout";
    story.StopDone("a");
    story.Lapse(1000);
    ASSERT_TRUE(Farewell(story, "a"));
    EXPECT_EQ(Farewell(story, "a")->exit_code, 75);
    EXPECT_NE(Farewell(story, "a")->reason.find("node b left: drained"), std::string::npos)
        << Farewell(story, "a")->reason;
    EXPECT_EQ(Farewell(story, "b")->exit_code, 75);
  }
}

TEST(JobLeave, AJobWhoseNodesAllWereDrainedOverARestartEnds) {
  JobStory story({.min = 2, .max = 2, .startup_quiet_ms = 1000});
  story.Attach("a");
  story.Attach("b");
  story.Lapse(1000);
  story.RestartRendezvous();
  for (const char* agent : {"a", "b"}) story.Attach(agent, {.is_drained = true});
  story.Lapse(1000);
  for (const char* agent : {"a", "b"}) {
    ASSERT_TRUE(Farewell(story, agent));
    EXPECT_EQ(Farewell(story, agent)->exit_code, 75);
  }
  EXPECT_EQ(story.machine().state(), JobState::kFailed) << "and is forgotten as such";
  EXPECT_TRUE(story.machine().IsDone());
}

TEST(JobLeave, AJobThatFormedARoundSinceIsNotEndedByAnOldDrain) {
  JobStory story({.min = 1, .max = 2, .join_timeout_ms = 5000, .startup_quiet_ms = 1000});
  story.Attach("a");
  story.Attach("c");
  story.Lapse(1000);
  story.RestartRendezvous();
  story.Attach("c");
  story.Lapse(7000);
  ASSERT_EQ(story.machine().state(), JobState::kRunning);
  story.Attach("a", {.is_drained = true});
  EXPECT_EQ(Farewell(story, "a")->exit_code, 75);
  story.Break("c");
  story.Lapse(200);
  EXPECT_EQ(story.machine().state(), JobState::kGathering) << "the loss may be made good";
}

TEST(JobLeave, StaleOrForeignStepsAreIgnored) {
  JobStory story({.min = 2, .max = 3});
  RunThree(story);
  story.Send("b", CheckpointStep{story.world("b"), 7});
  EXPECT_EQ(story.CountOf<CheckpointAt>("a"), 0) << "only rank 0's node names a step";
  story.Send("a", CheckpointStep{World{RoundId(9), {}}, 7});
  story.Send("a", CheckpointStepKnown{story.world("a"), 7});
  EXPECT_EQ(story.CountOf<CheckpointAt>("a"), 0);
}

TEST(JobLeave, PlainLeavesWithinTheWindowAreOneEvent) {
  JobStory story({.min = 1, .max = 3});
  for (const char* agent : {"a", "b", "c"}) story.Attach(agent);
  story.Leave("b");
  story.StopDone("a");
  story.StopDone("c");
  story.Lapse(400);
  EXPECT_EQ(story.world("a").round, RoundId(1)) << "c may leave, too";
  story.Leave("c");
  story.Lapse(200);
  EXPECT_EQ(story.world("a").round, RoundId(2));
  EXPECT_EQ(story.machine().Status(story.now()).nodes.size(), 1u);
}

// ---- growing -------------------------------------------------------------------------------

TEST(JobLeave, ANewcomerIsTakenInAtTheNextCommitAndNoStepIsRepeated) {
  JobStory story({.min = 2, .max = 3, .last_call_ms = 100, .scale_up = ScaleUp::kCheckpoint});
  story.Attach("a");
  story.Attach("b");
  story.Lapse(200);
  story.Trace();
  story.Attach("c");
  story.Lapse(1000);
  Commit(story, "a", 5);
  EXPECT_EQ(story.Trace(), R"(
   200 c> Attach
   200   c< Attached
   200   c< Notice: the job runs with 2 of at most 3 nodes; this one joins at the next checkpoint
               (--scale-up)
  1200 a> CommitDone 5
  1200   b< Noted 5
  1200   c< Noted 5
  1200   a< Stop round 1 (membership, culprit -1): the world grows: 3 of at most 3 nodes are here
  1200   b< Stop round 1 (membership, culprit -1): the world grows: 3 of at most 3 nodes are here
  1200   a< Noted 5
)");
}

TEST(JobLeave, AutoWaitsForACommitWhereTheJobMakesThem) {
  JobStory story({.min = 1, .max = 3, .last_call_ms = 100});
  story.Attach("a");
  story.Lapse(200);
  story.Attach("b");
  EXPECT_EQ(story.CountOf<StopRound>("a"), 1) << "no commit yet: at once";
  story.StopDone("a");
  Commit(story, "a", 5);
  story.Attach("c");
  EXPECT_EQ(story.CountOf<StopRound>("a"), 1);
  Commit(story, "a", 6);
  EXPECT_EQ(story.CountOf<StopRound>("a"), 2);
}

TEST(JobLeave, ImmediateWaitsForNothing) {
  JobStory story({.min = 1, .max = 3, .last_call_ms = 100, .scale_up = ScaleUp::kImmediate});
  story.Attach("a");
  story.Lapse(200);
  Commit(story, "a", 5);
  story.Attach("b");
  EXPECT_EQ(story.CountOf<StopRound>("a"), 1);
}

TEST(JobLeave, WhoWaitsForACommitThatDoesntComeIsTold) {
  JobStory story({.min = 1, .max = 2, .last_call_ms = 100, .scale_up = ScaleUp::kCheckpoint});
  story.Attach("a");
  story.Lapse(200);
  story.Attach("b");
  EXPECT_EQ(story.CountOf<Notice>("b"), 1);
  story.Lapse(1'201'000);
  EXPECT_EQ(story.CountOf<Notice>("b"), 3);
  EXPECT_NE(std::get<Notice>(story.told("b").back()).text.find("none has come for 20 minutes"),
            std::string::npos)
      << std::get<Notice>(story.told("b").back()).text;
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobLeave, AStopForWhoLeavesTakesInWhoWaits) {
  JobStory story({.min = 2, .max = 4, .last_call_ms = 100, .scale_up = ScaleUp::kCheckpoint});
  RunThree(story);
  story.Lapse(200);
  for (const char* agent : {"a", "b", "c"}) story.CanSave(agent);
  story.Attach("d");
  Preempt(story, "b");
  Agree(story);
  Commit(story, "a", 7);
  EXPECT_EQ(story.CountOf<StopRound>("a"), 0) << "others may leave with b";
  story.Lapse(500);
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
  EXPECT_EQ(story.world("d").round, RoundId(2));
  EXPECT_EQ(story.machine().Status(story.now()).nodes.size(), 3u);
}

}  // namespace
}  // namespace muster::rendezvous
