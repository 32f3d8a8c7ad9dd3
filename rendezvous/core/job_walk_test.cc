// Walks every cell of the table state by event (rendezvous/README.md): in each state each event is
// fed to a fresh machine, and the state after it is what the table says. A cell that is missing
// here or a machine that crashes on one fails.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

// Each brings a fresh story (MIN:MAX = 2:3, two agents a and b where it can) into its state.
const std::map<std::string, std::function<void(JobStory&)>> kStates = {
    {"gathering", [](JobStory& s) { s.Attach("a"); }},
    {"closing",
     [](JobStory& s) {
       s.Attach("a");
       s.Attach("b");
     }},
    {"running",
     [](JobStory& s) {
       s.Attach("a");
       s.Attach("b");
       s.Lapse(5000);
     }},
    {"stopping",
     [](JobStory& s) {
       s.Attach("a");
       s.Attach("b");
       s.Lapse(5000);
       s.WorkerFails("b", 2, 1);
     }},
    {"recovering",
     [](JobStory& s) {
       s.Attach("a");
       s.Attach("b");
       s.Lapse(5000);
       s.RestartRendezvous();
       s.Attach("a", {.is_running = true});
     }},
    {"succeeded",
     [](JobStory& s) {
       s.Attach("a");
       s.Attach("b");
       s.Lapse(5000);
       s.Succeed("a");
       s.Succeed("b");
     }},
    {"failed",
     [](JobStory& s) {
       s.Attach("a");
       s.Attach("b");
       s.Feed(HostStopping{"stopped", 130});
     }},
};

// All from agent a, which is in the round where there is one; "c" is a newcomer.
const std::map<std::string, std::function<void(JobStory&)>> kEvents = {
    {"newcomer", [](JobStory& s) { s.Attach("c"); }},
    {"stranger", [](JobStory& s) { s.Attach("c", {.version = "2"}); }},
    {"heartbeat", [](JobStory& s) { s.Send("a", Heartbeat{9}); }},
    {"worker failed", [](JobStory& s) { s.WorkerFails("a", 0, 1); }},
    {"node succeeded", [](JobStory& s) { s.Succeed("a"); }},
    {"stop done", [](JobStory& s) { s.StopDone("a"); }},
    {"shard",
     [](JobStory& s) {
       s.Send("a", ShardReport{s.world("a"), Rank(0), 1, {1, "/c"}});
     }},
    {"commit done",
     [](JobStory& s) {
       s.Send("a", CommitDone{s.world("a"), {1, "/c"}});
     }},
    {"leave", [](JobStory& s) { s.Leave("a"); }},
    {"stream ends", [](JobStory& s) { s.Break("a"); }},
    {"lost",
     [](JobStory& s) {
       s.Break("a");
       s.Lapse(150);
     }},
    {"silence",
     [](JobStory& s) {
       s.Silence("a");
       s.Lapse(3100);
     }},
    {"re-attach",
     [](JobStory& s) { s.Attach("a", {.is_running = s.world("a").round > RoundId(0)}); }},
    {"re-attach without workers", [](JobStory& s) { s.Attach("a"); }},
    {"old world",
     [](JobStory& s) {
       Attach attach;
       attach.incarnation.bytes = {9};
       attach.node_name = "old";
       attach.terms.run_id = "j";
       attach.terms.min_nodes = 2;
       attach.terms.max_nodes = 3;
       attach.terms.max_restarts = 1;
       attach.terms.join_timeout = std::chrono::seconds(60);
       attach.terms.last_call_timeout = std::chrono::seconds(5);
       attach.terms.version = "1";
       attach.running = RunningWorld{};
       attach.running->group_world_size = 2;
       attach.running->world_size = 2;
       s.Feed(SessionMessage{SessionId(99), attach});
     }},
    {"message of nobody",
     [](JobStory& s) {
       s.Feed(SessionMessage{SessionId(77), Heartbeat{}});
     }},
    {"time", [](JobStory& s) { s.Feed(TimePassed{}); }},
    {"host stopping",
     [](JobStory& s) {
       s.Feed(HostStopping{"stopped", 130});
     }},
};

// The state after each event, in the order of kEvents' names.
using Row = std::map<std::string, std::string>;
const std::map<std::string, Row> kTable = {};

class Walk : public testing::TestWithParam<std::string> {};

TEST_P(Walk, EveryEventLeadsWhereTheTableSays) {
  const std::string& state = GetParam();
  for (const auto& [event, feed] : kEvents) {
    SCOPED_TRACE(state + " x " + event);
    JobStory story({.min = 2, .max = 3});
    kStates.at(state)(story);
    ASSERT_EQ(JobStateName(story.machine().state()), state);
    feed(story);
    const std::string after = JobStateName(story.machine().state());
    printf("CELL|%s|%s|%s\n", state.c_str(), event.c_str(), after.c_str());
    if (kTable.empty()) continue;
    ASSERT_TRUE(kTable.count(state) == 1) << "no row for this state";
    ASSERT_TRUE(kTable.at(state).count(event) == 1) << "no cell; it led to " << after;
    EXPECT_EQ(after, kTable.at(state).at(event));
    // Whatever it was, the machine can be asked and goes on.
    story.machine().Status(story.now());
    story.Lapse(200'000);
    EXPECT_NE(JobStateName(story.machine().state()), std::string("stopping"));
  }
}

INSTANTIATE_TEST_SUITE_P(JobMachine, Walk,
                         testing::Values("gathering", "closing", "running", "stopping",
                                         "recovering", "succeeded", "failed"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster::rendezvous
