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
  EXPECT_EQ(story.Last<StartRound>("a"), nullptr) << "those of that round may come";
  story.Lapse(3000);
  ASSERT_NE(story.Last<StartRound>("a"), nullptr);
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

// Without a state directory: others had begun anew when one came back that had seen more rounds.
TEST(JobRecord, ANodeOfAnEarlierWorldDoesNotOutrankWhatIsCommittedHere) {
  JobStory story({.min = 2, .max = 3});
  story.Attach("a");
  story.Attach("b");
  story.Lapse(6000);
  const World world = story.world("a");
  story.Send("a", CommitDone{world, {1860, "/c/1860"}});
  story.Attach("c", {.last_commit_step = 1020, .highest_round = 2});
  EXPECT_EQ(story.machine().Status(story.now()).last_commit->step, 1860);
  story.Send("a", CommitDone{world, {1880, "/c/1880"}});
  EXPECT_EQ(story.Last<CommitNoted>("a")->commit.step, 1880);
  EXPECT_EQ(story.record().commit->step, 1880);
}

// A world that outlived the rendezvous, while a later round that it knows nothing of is over.
TEST(JobRecord, WhatAnOlderWorldSavesIsRefusedInWords) {
  JobStory story({.min = 2, .max = 3});
  story.Attach("a");
  story.Attach("b");
  story.Lapse(6000);
  story.RestartRendezvous();
  for (const char* agent : {"a", "b"}) story.Attach(agent, {.is_running = true});
  ASSERT_EQ(story.machine().state(), JobState::kRunning);
  // It waits for the next checkpoint.
  story.Send("a", CommitDone{story.world("a"), {10, "/c/10"}});
  story.Attach("c", {.last_commit_step = 70, .highest_round = 4});
  story.Send("a", CommitDone{story.world("a"), {20, "/c/20"}});
  const auto* refused = story.Last<CommitRefused>("a");
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->reason,
            "a node was in round 4, which knew of step 70; what the older round 1 saves can't be "
            "committed");
}

// How the job of two nodes ends that is left by one of them; it says "run it again".
JobRecord EndToBeRunAgain(JobStory& story) {
  story.Attach("a");
  story.Attach("b");
  story.Leave("a");
  story.StopDone("b");
  EXPECT_EQ(story.record().verdict->exit_code, 75);
  return story.record();
}

TEST(JobRecord, AJobThatIsOpenedAnewIsKeptBeforeAnybodyIsToldOfIt) {
  JobStory story({.min = 2, .max = 2});
  EndToBeRunAgain(story);
  story.Break("b");
  Attach newcomer;
  story.RestartRendezvous(story.machine().OpenedAnewBy(newcomer).value(), /*record_is_new=*/true);
  story.Attach("a", {.life = 1, .highest_round = 0});
  const auto* kept = std::get_if<KeepRecord>(&story.last_effects().front());
  ASSERT_NE(kept, nullptr);
  EXPECT_TRUE(kept->before_the_rest);
  EXPECT_EQ(kept->record.world.round, RoundId(1));
  EXPECT_EQ(kept->record.verdict, std::nullopt);
  // Once.
  story.Send("a", Heartbeat{1});
  for (const JobEffect& effect : story.last_effects())
    EXPECT_FALSE(std::holds_alternative<KeepRecord>(effect));
}

// The disk was full when the job began anew.
TEST(JobRecord, AnEndThatIsOlderThanWhatANodeHasSeenDoesNotCount) {
  JobStory story({.min = 2, .max = 2});
  const JobRecord over = EndToBeRunAgain(story);
  story.RestartRendezvous({.world = over.world});
  for (const char* agent : {"a", "b"}) story.Attach(agent, {.life = 1, .highest_round = 0});
  story.Lapse(3000);
  ASSERT_EQ(story.world("a").round, RoundId(2));
  story.RestartRendezvous(over);
  story.Attach("late", {.highest_round = 0});
  EXPECT_EQ(story.Last<JobEnded>("late")->verdict.exit_code, 75) << "as far as is known";
  for (const char* agent : {"a", "b"})
    story.Attach(agent, {.life = 1, .is_running = true, .highest_round = 2});
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  EXPECT_EQ(story.CountOf<JobEnded>("b"), 1) << "in its first life";
  EXPECT_EQ(story.record().verdict, std::nullopt);
  EXPECT_EQ(story.record().world.round, RoundId(2));
}

}  // namespace
}  // namespace muster::rendezvous
