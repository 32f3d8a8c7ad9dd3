// What is said of the node that hosts the rendezvous when it leaves, and of nodes that are on their
// way out or set aside.
#include <string>
#include <vector>

#include "base/session_messages.h"
#include "gtest/gtest.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

void Drain(JobStory& story, char agent) {
  story.Feed(NodeDrained{{.bytes = {1, static_cast<uint8_t>(agent), 0}}});
}

// Node a hosts, and has been let go without a checkpoint; b and c go on.
void LetHostGo(JobStory& story) {
  story.Attach("a", {.hosts_rendezvous = true});
  story.Attach("b");
  story.Attach("c");
  Drain(story, 'a');
  story.Lapse(1000);
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
}

TEST(JobHost, IsMarkedInTheStatusAndSoIsWhoLeaves) {
  JobStory story({.min = 1, .max = 3});
  story.Attach("a", {.hosts_rendezvous = true});
  story.Attach("b");
  story.Attach("c");
  story.Send("b", LeaveRequest{story.world("b"), "preempted (SIGTERM)"});
  const std::vector<NodeStatus> nodes = story.machine().Status(story.now()).nodes;
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_TRUE(nodes[0].hosts_rendezvous);
  EXPECT_FALSE(nodes[1].hosts_rendezvous);
  EXPECT_EQ(nodes[0].leaves_because, std::nullopt);
  EXPECT_EQ(nodes[1].leaves_because, "preempted (SIGTERM)");
}

TEST(JobHost, IsToldToStayWhenItsWorkersHaveLeftAndIsNamedUntilTheJobEnds) {
  JobStory story({.min = 1, .max = 3});
  LetHostGo(story);
  const auto* ended = std::get_if<JobEnded>(&story.told("a").back());
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->verdict.exit_code, 75);
  EXPECT_EQ(ended->verdict.reason,
            "job j: node a was drained and left without a checkpoint of its own; it hosts the "
            "rendezvous, so its muster process stays until the job ends: don't switch it off "
            "before");
  const JobStatus status = story.machine().Status(story.now());
  EXPECT_EQ(status.nodes.size(), 2u);
  ASSERT_TRUE(status.departed_host.has_value());
  EXPECT_EQ(status.departed_host->node_name, "a");
  EXPECT_EQ(status.departed_host->address, "a.net");
  story.Succeed("b");
  story.Succeed("c");
  ASSERT_EQ(story.machine().state(), JobState::kSucceeded);
  EXPECT_FALSE(story.machine().Status(story.now()).departed_host.has_value());
}

TEST(JobHost, IsNamedAlsoIfItWentByItself) {
  for (const Leave& leave : {Leave{.reason = "stopped by SIGTERM"},
                             Leave{.reason = "its guardian ended", .is_lost = true}}) {
    JobStory story({.min = 1, .max = 2});
    story.Attach("a", {.hosts_rendezvous = true});
    story.Attach("b");
    story.Send("b", Heartbeat{1});
    EXPECT_FALSE(story.machine().Status(story.now()).departed_host.has_value());
    story.Send("a", leave);
    const JobStatus status = story.machine().Status(story.now());
    ASSERT_TRUE(status.departed_host.has_value()) << leave.reason;
    EXPECT_EQ(status.departed_host->node_name, "a");
  }
}

TEST(JobHost, AloneItMayGo) {
  JobStory story({.min = 1, .max = 3});
  story.Attach("a", {.hosts_rendezvous = true});
  story.Lapse(6000);
  Drain(story, 'a');
  story.Lapse(1000);
  story.StopDone("a");
  const auto* ended = std::get_if<JobEnded>(&story.told("a").back());
  ASSERT_NE(ended, nullptr);
  EXPECT_TRUE(ended->verdict.reason.ends_with("; run it again to go on")) << ended->verdict.reason;
}

TEST(JobHost, AnotherNodeThatLeavesIsNotTakenForIt) {
  JobStory story({.min = 1, .max = 3});
  story.Attach("a", {.hosts_rendezvous = true});
  story.Attach("b");
  story.Attach("c");
  Drain(story, 'b');
  story.Lapse(1000);
  for (const char* agent : {"a", "b", "c"}) story.StopDone(agent);
  EXPECT_FALSE(story.machine().Status(story.now()).departed_host.has_value());
}

TEST(JobHost, RefusedByItsOwnJobItEndsOneThatIsShortOfNodes) {
  JobStory waiting({.min = 2, .max = 2});
  waiting.Attach("b");
  waiting.Feed(HostRefused{"the host was refused", 78});
  const auto* ended = waiting.Last<JobEnded>("b");
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->verdict.exit_code, 78);
  EXPECT_EQ(ended->verdict.reason, "job j failed: the host was refused");
  JobStory running({.min = 2, .max = 2});
  running.Attach("b");
  running.Attach("c");
  running.Feed(HostRefused{"the host was refused", 78});
  EXPECT_EQ(running.machine().state(), JobState::kRunning);
  EXPECT_EQ(running.Last<JobEnded>("b"), nullptr);
}

TEST(JobHost, HowLongANodeIsSetAsideIsInTheStatus) {
  JobStory story({.min = 1, .max = 2, .max_node_failures = 1});
  story.Attach("a");
  story.Attach("b");
  story.Break("b");
  story.Lapse(200);
  story.StopDone("a");
  story.Attach("b", {.life = 1});
  story.Lapse(60'000);
  const std::vector<NodeStatus> nodes = story.machine().Status(story.now()).nodes;
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_FALSE(nodes[0].is_set_aside);
  EXPECT_TRUE(nodes[1].is_set_aside);
  // Of ten minutes since it was lost.
  EXPECT_LE(nodes[1].set_aside_left, std::chrono::seconds(540));
  EXPECT_GE(nodes[1].set_aside_left, std::chrono::seconds(539));
}

TEST(JobHost, OneThatIsStartedAnewIsNotAwaitedInItsOldPlace) {
  for (bool is_host : {true, false}) {
    SCOPED_TRACE(is_host);
    JobStory story({.min = 1, .max = 3, .startup_quiet_ms = 1000});
    for (const char* agent : {"a", "b", "c"}) story.Attach(agent);
    story.Lapse(1000);
    ASSERT_EQ(story.machine().state(), JobState::kRunning);
    story.RestartRendezvous();
    story.Attach("a", {.life = 1, .highest_round = 0, .hosts_rendezvous = is_host});
    for (const char* agent : {"b", "c"}) story.Attach(agent, {.is_running = true});
    story.Lapse(900);
    EXPECT_EQ(story.CountOf<StopRound>("b"), 0) << "another one may be missing";
    story.Lapse(200);
    EXPECT_EQ(story.CountOf<StopRound>("b"), is_host ? 1 : 0);
    if (!is_host) continue;
    for (const char* agent : {"b", "c"}) story.StopDone(agent);
    story.Lapse(2500);
    EXPECT_EQ(story.world("a").round, RoundId(2)) << "when the lease of its old place is over";
    EXPECT_EQ(story.world("b").round, RoundId(2));
  }
}

}  // namespace
}  // namespace muster::rendezvous
