// Nodes that end before they can attach: who is told, and when it is over.
#include <string>

#include "base/session_messages.h"
#include "gtest/gtest.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

const NodeCannotStart kFailed{"b", "the program \"x\" does not exist; check the path"};
constexpr char kWords[] =
    "; node b could not start: the program \"x\" does not exist; check the path";

// The last Notice; empty: none.
std::string Told(JobStory& story, const std::string& agent) {
  std::string text;
  for (const RendezvousMessage& message : story.told(agent)) {
    if (const auto* notice = std::get_if<Notice>(&message)) text = notice->text;
  }
  return text;
}

TEST(JobCannotStart, WhoWaitsIsToldOnceAndGoesOnWaiting) {
  JobStory story({.min = 3, .max = 3});
  story.Attach("a");
  story.Lapse(2000);
  story.Trace();
  story.Feed(kFailed);
  story.Feed(kFailed);
  story.Lapse(5000);
  story.Feed(kFailed);
  story.Lapse(5000);
  EXPECT_EQ(story.Trace(), R"(
  2000 b cannot start
  2000 b cannot start
  3000   a< Notice: waiting for 2 more nodes (1 of 3 nodes is here); node b could not start: the
               program "x" does not exist; check the path
  7000 b cannot start
)");
  EXPECT_EQ(story.machine().state(), JobState::kGathering);
}

TEST(JobCannotStart, WhoComesLaterIsToldToo) {
  JobStory story({.min = 3, .max = 3});
  story.Attach("a");
  story.Feed(kFailed);
  story.Lapse(2000);
  story.Attach("c");
  EXPECT_EQ(Told(story, "c"),
            std::string("waiting for 1 more node (2 of 3 nodes are here)") + kWords);
}

TEST(JobCannotStart, ItIsForgottenWhenTheNodeComesAfterAll) {
  JobStory story({.min = 3, .max = 3});
  story.Attach("a");
  story.Feed(kFailed);
  story.Lapse(2000);
  story.Attach("b");
  EXPECT_EQ(Told(story, "b"), "waiting for 1 more node (2 of 3 nodes are here)");
  story.Lapse(2000);
  EXPECT_EQ(Told(story, "a"), "waiting for 1 more node (2 of 3 nodes are here)");
}

TEST(JobCannotStart, TheVerdictOfAJobThatWaitedInVainNamesIt) {
  JobStory story({.min = 2, .max = 2});
  story.Attach("a");
  story.Feed(kFailed);
  story.Lapse(61'000);
  const auto* ended = std::get_if<JobEnded>(&story.told("a").back());
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->verdict.exit_code, 69);
  EXPECT_NE(ended->verdict.reason.find(std::string(kWords).substr(2) + "; start at least 2"),
            std::string::npos)
      << ended->verdict.reason;
}

TEST(JobCannotStart, AJobThatRunsRecordsItAndTheNextWaitKnowsNothingOfIt) {
  JobStory story({.min = 2, .max = 3, .shows_records = true});
  story.Attach("a");
  story.Attach("c");
  story.Lapse(6000);
  ASSERT_EQ(story.machine().state(), JobState::kRunning);
  story.Trace();
  story.Feed(kFailed);
  EXPECT_NE(story.Trace().find("# job j: node b could not start: the program"), std::string::npos);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  story.Break("c");
  story.Lapse(200);
  story.StopDone("a");
  story.Lapse(2000);
  EXPECT_EQ(Told(story, "a"), "waiting for 1 more node (1 of 2..3 nodes is here)");
}

TEST(JobCannotStart, WhatWasSaidWhileARoundIsRecoveredIsToldToThoseWhoWaitThen) {
  JobStory story({.min = 2, .max = 2});
  story.Attach("a");
  story.Attach("b");
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true});
  ASSERT_EQ(story.machine().state(), JobState::kRecovering);
  story.Feed(kFailed);
  story.WorkerFails("a", 0, 1);
  story.StopDone("a");
  story.Lapse(10'000);
  EXPECT_EQ(Told(story, "a"),
            std::string("waiting for 1 more node (1 of 2 nodes is here)") + kWords);
}

}  // namespace
}  // namespace muster::rendezvous
