// What failures and losses cost a job as a whole: when it isn't started again, which nodes are set
// aside and how they come back, and that nobody disturbs a round that has begun to finish.
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/core/job_machine.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

JobStory RunningPair(JobStory::Options options) {
  JobStory story(options);
  story.Attach("a");
  story.Attach("b");
  if (story.machine().state() == JobState::kClosing) story.Lapse(options.last_call_ms);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  return story;
}

// The worker of rank 2 on b fails after `uptime_ms`, at `step`.
void FailAfter(JobStory& story, int64_t uptime_ms, int64_t step = -1) {
  story.Lapse(uptime_ms);
  story.WorkerFails("b", 2, 9);
  story.StopDone("b", step);
  story.StopDone("a", step - 1);
}

std::string ReasonOf(JobStory& story) {
  const auto* ended = story.Last<JobEnded>("a");
  return ended == nullptr ? "it has not ended" : ended->verdict.reason;
}

// ---- restarts ------------------------------------------------------------------------------

TEST(JobLedger, TooManyRestartsWithinAnHourEndTheJobAndNameTheFlag) {
  JobStory story = RunningPair({.max_restarts = 100, .max_restarts_per_hour = 2});
  FailAfter(story, 5000);
  FailAfter(story, 5000);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  FailAfter(story, 5000);
  EXPECT_EQ(story.machine().state(), JobState::kFailed);
  EXPECT_EQ(ReasonOf(story),
            "job j failed: worker rank 2 (local rank 0) on node b exited with code 9; it was "
            "restarted 2 times within the last hour, which is all that --max-restarts-per-hour=2 "
            "allows; mend the cause, or allow more");
  EXPECT_EQ(story.Last<JobEnded>("b")->verdict.exit_code, 9);
  EXPECT_EQ(story.Last<JobEnded>("b")->verdict.restarts_charged, 2);
}

TEST(JobLedger, RestartsFurtherApartThanAnHourAreNotCountedTogether) {
  JobStory story = RunningPair({.max_restarts = 100, .max_restarts_per_hour = 1});
  for (int i = 0; i < 3; ++i) FailAfter(story, 3'600'000);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobLedger, AProgramThatDiesAtOnceOnEveryTryIsGivenUp) {
  JobStory story = RunningPair({.max_restarts = 100, .max_early_failures = 3});
  FailAfter(story, 200);
  FailAfter(story, 200);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  FailAfter(story, 200);
  EXPECT_EQ(story.machine().state(), JobState::kFailed);
  EXPECT_NE(ReasonOf(story).find("no round has lived 1 s (--min-uptime) and 3 in a row failed"),
            std::string::npos)
      << ReasonOf(story);
}

TEST(JobLedger, AProgramThatLivedInAnyRoundIsStartedAgain) {
  JobStory story = RunningPair({.min = 1, .max = 2, .max_restarts = 5, .max_early_failures = 2});
  story.Lapse(5000);
  story.Leave("b");  // the round lived, though no failure ended it
  story.StopDone("a");
  story.Lapse(600);  // others might leave with it
  for (int i = 0; i < 4; ++i) {
    story.WorkerFails("a", 0, 1);
    story.StopDone("a");
  }
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobLedger, AJobThatFailsAtTheSameStepEveryTimeIsStopped) {
  JobStory story = RunningPair({.max_restarts = 100, .max_stuck_restarts = 2});
  FailAfter(story, 5000, 120);
  FailAfter(story, 5000, 120);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  FailAfter(story, 5000, 120);
  EXPECT_EQ(story.machine().state(), JobState::kFailed);
  EXPECT_NE(ReasonOf(story).find("rank 2 failed at step 120 in each of the last 3 rounds"),
            std::string::npos)
      << ReasonOf(story);
}

TEST(JobLedger, TheStepOfTheFailureItselfCountsToo) {
  JobStory story = RunningPair({.max_restarts = 100, .max_stuck_restarts = 1});
  for (int i = 0; i < 2; ++i) {
    WorkerFailure failure;
    failure.rank = Rank(2);
    failure.exit.code = 1;
    failure.last_step = 7;
    story.Send("b", WorkerFailed{story.world("b"), failure});
    story.StopDone("a");
    story.StopDone("b");
  }
  EXPECT_NE(ReasonOf(story).find("at step 7"), std::string::npos) << ReasonOf(story);
}

TEST(JobLedger, StepsOfAnEarlierRoundDoNotCount) {
  JobStory story = RunningPair({.max_restarts = 100, .max_stuck_restarts = 1});
  const World first = story.world("a");
  FailAfter(story, 5000, 120);
  story.WorkerFails("b", 2, 1);
  story.Send("a", StopDone{first, 7, 120});  // comes late, once more
  story.StopDone("a", 130);
  story.StopDone("b", 130);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobLedger, ARestartedRendezvousKeepsTheBudgetAndStartsTheOtherRulesAfresh) {
  JobStory story = RunningPair({.max_restarts = 3, .max_restarts_per_hour = 1});
  FailAfter(story, 5000);
  story.RestartRendezvous();
  for (const char* agent : {"a", "b"}) story.Attach(agent, {.is_running = true});
  FailAfter(story, 5000);
  EXPECT_EQ(story.machine().state(), JobState::kRunning) << "the hour is counted afresh";
  EXPECT_EQ(story.machine().Status(story.now()).restarts_charged, 2);
}

// ---- nodes that are lost again and again ---------------------------------------------------

// Node b is lost and comes back as another incarnation, `times` times.
void LoseAndReplace(JobStory& story, int times) {
  static int life = 0;
  for (int i = 0; i < times; ++i) {
    story.Break("b");
    story.Lapse(150);
    story.StopDone("a");
    story.Attach("b", {.life = ++life});
    if (story.machine().state() == JobState::kStopping) story.StopDone("a");
  }
}

TEST(JobLedger, ANodeThatIsLostTooOftenIsSetAsideUntilACommit) {
  JobStory story = RunningPair({.min = 1, .max = 2, .max_node_failures = 2});
  LoseAndReplace(story, 2);
  EXPECT_EQ(story.machine().state(), JobState::kRunning) << "b is no reason to stop any more";
  EXPECT_EQ(story.Last<StartRound>("a")->group_world_size, 1);
  EXPECT_EQ(story.Last<Notice>("b")->text,
            "this node was lost too often (--max-node-failures) and is set aside until the next "
            "checkpoint, for at most 10 minutes, or until the job can't go on without it");
  EXPECT_TRUE(story.machine().Status(story.now()).nodes[1].is_set_aside);
  story.Send("a", CommitDone{story.world("a"), {5, "/c"}});
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "the world grows again";
}

TEST(JobLedger, AReplacementOfALostNodeIsLetInAtOnce) {
  JobStory story = RunningPair({.min = 1, .max = 2, .max_node_failures = 2});
  LoseAndReplace(story, 1);
  EXPECT_EQ(story.Last<StartRound>("b")->group_world_size, 2);
  EXPECT_EQ(story.Last<Refused>("b"), nullptr);
}

TEST(JobLedger, TimeBringsANodeBackThatWasSetAside) {
  JobStory story = RunningPair({.min = 1, .max = 2, .max_node_failures = 2});
  LoseAndReplace(story, 2);
  story.Lapse(int64_t{9} * 60'000);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  story.Lapse(60'000);
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "the world grows again";
}

TEST(JobLedger, ANodeThatIsSetAsideIsTheLastResort) {
  JobStory story = RunningPair({.min = 2, .max = 3, .max_node_failures = 2, .shows_records = true});
  story.Attach("c");
  for (const char* agent : {"a", "b"}) story.StopDone(agent);
  for (int life = 1; life <= 2; ++life) {
    story.Break("b");
    story.Lapse(150);
    for (const char* agent : {"a", "c"}) story.StopDone(agent);
    story.Attach("b", {.life = life});
    for (const char* agent : {"a", "c"}) story.StopDone(agent);
  }
  ASSERT_EQ(story.Last<StartRound>("a")->group_world_size, 2) << "a and c suffice";
  story.Break("c");
  story.Lapse(150);
  story.Trace();
  story.StopDone("a");
  EXPECT_EQ(story.Last<StartRound>("b")->group_world_size, 2);
  EXPECT_NE(
      story.Trace().find("node b was lost 2 times without progress (--max-node-failures), but"),
      std::string::npos);
  EXPECT_FALSE(story.machine().Status(story.now()).nodes[1].is_set_aside);
}

TEST(JobLedger, WhoMayStillComeBackIsAwaitedBeforeTheLastResort) {
  JobStory story = RunningPair({.min = 2, .max = 3, .max_node_failures = 1});
  story.Attach("c");
  for (const char* agent : {"a", "b"}) story.StopDone(agent);
  story.Break("b");
  story.Lapse(150);
  for (const char* agent : {"a", "c"}) story.StopDone(agent);
  story.Attach("b", {.life = 1});
  ASSERT_EQ(story.Last<StartRound>("a")->group_world_size, 2);
  story.WorkerFails("a", 0, 1);
  story.StopDone("c");
  story.Break("c");
  story.StopDone("a");
  EXPECT_EQ(story.machine().state(), JobState::kGathering);
  story.Attach("c");
  EXPECT_EQ(story.Last<StartRound>("c")->world.round, story.world("a").round);
  EXPECT_EQ(story.Last<StartRound>("b")->world.round, RoundId(2)) << "b is not needed";
}

TEST(JobLedger, AReplacementThatCameBeforeTheLossWasKnownIsSetAsideToo) {
  JobStory story = RunningPair({.min = 1, .max = 2, .max_node_failures = 1});
  const SessionId old = story.session("b");
  story.Attach("b", {.life = 1});  // a spare, on the same host
  story.Feed(SessionEnded{old});
  story.Lapse(150);
  story.StopDone("a");
  EXPECT_EQ(story.Last<StartRound>("a")->group_world_size, 1);
}

// ---- a round whose first workers have finished ---------------------------------------------

TEST(JobLedger, NobodyIsTakenInOnceAWorkerHasFinished) {
  JobStory story = RunningPair({.min = 2, .max = 3});
  story.Send("b", WorkerSucceeded{story.world("b")});
  story.Attach("c");
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  EXPECT_EQ(story.Last<Notice>("c")->text,
            "the first workers of round 1 have finished, so nobody is taken in any more; this node "
            "waits for the result");
  story.Succeed("a");
  story.Succeed("b");
  ASSERT_NE(story.Last<JobEnded>("c"), nullptr);
  EXPECT_TRUE(story.Last<JobEnded>("c")->verdict.succeeded);
}

TEST(JobLedger, ASuccessOfAnEarlierRoundIsNone) {
  JobStory story = RunningPair({.min = 2, .max = 3});
  const World first = story.world("b");
  FailAfter(story, 5000);
  story.Send("b", WorkerSucceeded{first});
  story.Attach("c");
  EXPECT_EQ(story.machine().state(), JobState::kStopping) << "the world grows";
}

TEST(JobLedger, ARestartedRendezvousLearnsThatAWorkerHasFinished) {
  JobStory story = RunningPair({.min = 2, .max = 3});
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.Attach("b", {.is_running = true, .has_worker_succeeded = true});
  story.Attach("c");
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobLedger, AfterAFailureTheLateOneIsTakenInAllTheSame) {
  JobStory story = RunningPair({.min = 2, .max = 3});
  story.Send("b", WorkerSucceeded{story.world("b")});
  story.Attach("c");
  story.WorkerFails("a", 0, 1);
  for (const char* agent : {"a", "b"}) story.StopDone(agent);
  EXPECT_EQ(story.Last<StartRound>("c")->group_world_size, 3);
}

// The workers of an older world, cut off with their agent, may report to a restarted rendezvous
// before those of the world that replaced it.
TEST(JobLedger, AFailureInAWorldThatMayBeOutdatedIsChargedOnceAllCouldReport) {
  JobStory story({.min = 1, .max = 1, .startup_quiet_ms = 1000});
  story.Attach("a");
  story.Lapse(1000);
  story.Break("a");
  story.Attach("b");
  story.Lapse(200);
  ASSERT_EQ(story.world("b").round, RoundId(2));

  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.WorkerFails("a", 0, 3);
  story.StopDone("a");
  EXPECT_EQ(story.machine().state(), JobState::kStopping);
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  EXPECT_EQ(story.machine().Status(story.now()).world, story.world("b"));
  story.Lapse(2000);
  EXPECT_EQ(story.machine().Status(story.now()).restarts_charged, 0);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobLedger, AFailureSoonAfterARestartOfTheRendezvousIsChargedAllTheSame) {
  JobStory story({.min = 1, .max = 1, .startup_quiet_ms = 1000});
  story.Attach("a");
  story.Lapse(1000);
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.WorkerFails("a", 0, 3);
  story.StopDone("a");
  story.Lapse(1000);
  EXPECT_EQ(story.machine().Status(story.now()).restarts_charged, 1);
  EXPECT_EQ(story.world("a").round, RoundId(2));
}

TEST(JobLedger, AFailureIsChargedThoughTheLastNodeCameBackOnlyAfterIt) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  story.WorkerFails("a", 0, 3);
  story.Attach("b", {.is_running = true});
  story.StopDone("a");
  story.Lapse(5000);  // past the time at which missing nodes are given up
  story.StopDone("b");
  EXPECT_EQ(story.machine().Status(story.now()).restarts_charged, 1);
}

TEST(JobLedger, AnOlderWorldEndsTheJobWellOnlyOnceAllCouldReport) {
  JobStory story({.min = 1, .max = 1, .startup_quiet_ms = 1000});
  story.Attach("a");
  story.Lapse(1000);
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true, .has_succeeded = true});
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  story.Lapse(1000);
  EXPECT_EQ(story.machine().state(), JobState::kSucceeded);
}

}  // namespace
}  // namespace muster::rendezvous
