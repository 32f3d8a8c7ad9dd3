// What a rendezvous keeps of a job, and what its next life makes of it.
#include "rendezvous/core/job_record.h"

#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

// Seen in a storm: the rendezvous was killed while all who knew the newest commit were cut off.
TEST(JobRecord, ARestartedRendezvousKnowsTheCommitThatItKept) {
  JobStory story({.min = 1, .max = 2});
  story.Attach("a");
  story.Attach("b");
  story.Send("a", CommitDone{story.world("a"), {70, "/c/70"}});
  const bool is_first_kept = std::holds_alternative<KeepRecord>(story.last_effects().front()) &&
                             std::get<KeepRecord>(story.last_effects().front()).before_the_rest;
  EXPECT_TRUE(is_first_kept) << "before anybody is told";
  const JobRecord record = story.record();
  EXPECT_EQ(record.commit, (Commit{70, "/c/70"}));
  story.RestartRendezvous(record);
  // It was in the job, and knows an older one.
  story.Attach("c", {.last_commit_step = 60, .highest_round = 1});
  story.Lapse(10'000);
  EXPECT_EQ(story.Last<StartRound>("c")->resume, record.commit);
  EXPECT_EQ(story.Last<StartRound>("c")->world.round.value, record.world.round.value + 1);
}

TEST(JobRecord, NewcomersAloneDoNotGoOnFromWhatWasKept) {
  JobStory story({.min = 1, .max = 1});
  JobRecord record;
  record.world = {RoundId(4), WorldId{}};
  record.commit = Commit{70, "/c/70"};
  record.commit_round = RoundId(4);
  story.RestartRendezvous(record);
  story.Attach("a", {.highest_round = 0});
  EXPECT_EQ(story.Last<StartRound>("a")->resume, std::nullopt) << "another job of that run id";
  EXPECT_EQ(story.Last<StartRound>("a")->world.round, RoundId(5)) << "rounds only grow";
  EXPECT_EQ(story.record().commit, std::nullopt);
  // Nor does it come back with who was in the new job alone.
  story.Break("a");
  story.Attach("a", {.is_running = true});
  story.WorkerFails("a", 0, 1);
  story.StopDone("a");
  EXPECT_EQ(story.Last<StartRound>("a")->resume, std::nullopt);
}

TEST(JobRecord, WhatAgentsTellOfALaterCommitCountsMoreThanWhatWasKept) {
  JobStory story({.min = 1, .max = 1});
  JobRecord record;
  record.world = {RoundId(4), WorldId{}};
  record.commit = Commit{70, "/c/70"};
  record.commit_round = RoundId(4);
  story.RestartRendezvous(record);
  // The disk had refused this one.
  story.Attach("a", {.last_commit_step = 80, .highest_round = 4});
  EXPECT_EQ(story.Last<StartRound>("a")->resume->step, 80);
  EXPECT_EQ(story.record().commit->step, 80);
}

TEST(JobRecord, ARestartedRendezvousTellsTheResultThatItKept) {
  JobStory story({.min = 2, .max = 2});
  story.Attach("a");
  story.Attach("b");
  story.WorkerFails("a", 0, 3);
  story.StopDone("a");
  story.StopDone("b");
  story.WorkerFails("a", 0, 3);
  story.StopDone("a");
  story.StopDone("b");
  ASSERT_EQ(story.machine().state(), JobState::kFailed);
  const JobRecord record = story.record();
  ASSERT_TRUE(record.verdict.has_value());
  story.RestartRendezvous(record);
  EXPECT_TRUE(story.machine().IsDone());
  EXPECT_FALSE(story.machine().IsBlank());
  EXPECT_EQ(story.machine().Status(story.now()).verdict, record.verdict);
  story.Attach("late", {.highest_round = 0});
  EXPECT_EQ(story.Last<JobEnded>("late")->verdict, *record.verdict);
  // One that didn't hear of the end still runs its workers, as far as it says.
  story.Attach("b", {.is_running = true});
  EXPECT_EQ(story.Last<JobEnded>("b")->verdict, *record.verdict);
  story.Break("late");
  story.Break("b");
  EXPECT_TRUE(story.machine().IsDone());
}

}  // namespace
}  // namespace muster::rendezvous
