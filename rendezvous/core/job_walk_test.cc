// Walks every cell of the table state by event (job_machine.h): in each state each event is
// fed to a fresh machine, and the state after it is what the table says. A cell that is missing
// here or a machine that crashes on one fails.
#include <algorithm>
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
    {"worker succeeded", [](JobStory& s) { s.Send("a", WorkerSucceeded{s.world("a")}); }},
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
    {"leave request",
     [](JobStory& s) {
       s.Send("a", LeaveRequest{s.world("a"), "preempted"});
     }},
    {"drained",
     [](JobStory& s) {
       s.Feed(NodeDrained{{.bytes = {1, 'a', 0}}});
     }},
    {"stranger drained", [](JobStory& s) { s.Feed(NodeDrained{{.bytes = {77}}}); }},
    {"cannot start",
     [](JobStory& s) {
       s.Feed(NodeCannotStart{"d", "no program"});
     }},
    {"checkpoint step",
     [](JobStory& s) {
       s.Send("a", CheckpointStep{s.world("a"), 5});
     }},
    {"checkpoint step known",
     [](JobStory& s) {
       s.Send("a", CheckpointStepKnown{s.world("a"), 5});
     }},
    {"leave, lost",
     [](JobStory& s) { s.Send("a", Leave{.reason = "its guardian ended", .is_lost = true}); }},
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
       attach.running->world.round = RoundId(1);
       attach.running->world.id.bytes = {99};
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
    {"host refused",
     [](JobStory& s) {
       s.Feed(HostRefused{"refused", 78});
     }},
};

// The state after each event, one column for each state before it, as in job_machine.h:
// Gathering, Closing, Running, Stopping, recoVering, succeeded (O), Failed.
const std::vector<std::string> kColumns = {"gathering",  "closing",   "running", "stopping",
                                           "recovering", "succeeded", "failed"};
const std::map<char, std::string> kLetters = {
    {'G', "gathering"},  {'C', "closing"},   {'R', "running"}, {'S', "stopping"},
    {'V', "recovering"}, {'O', "succeeded"}, {'F', "failed"}};
const std::map<std::string, std::string> kTable = {
    {"newcomer", "C R S S V O F"},
    {"stranger", "G C R S V O F"},
    {"old world", "V V R S V O F"},
    {"re-attach", "G C R S V O F"},
    {"re-attach without workers", "G C S S S O F"},
    {"stream ends", "G G R S V O F"},
    {"lost", "G G S S V O F"},
    {"silence", "G G S S V O F"},
    {"heartbeat", "G C R S V O F"},
    {"message of nobody", "G C R S V O F"},
    {"node succeeded", "G C R S V O F"},
    {"worker succeeded", "G C R S V O F"},
    {"worker failed", "G C S S S O F"},
    {"stop done", "G C S S S O F"},
    {"leave", "G G S S S O F"},
    {"leave request", "G G S S V O F"},
    {"drained", "G G S S V O F"},
    {"stranger drained", "G C R S V O F"},
    {"cannot start", "G C R S V O F"},
    {"checkpoint step", "G C R S V O F"},
    {"checkpoint step known", "G C R S V O F"},
    {"leave, lost", "G G S S S O F"},
    {"shard", "G C R S V O F"},
    {"commit done", "G C R S V O F"},
    {"time", "G C R S V O F"},
    {"host stopping", "F F F F F O F"},
    {"host refused", "F C R S V O F"},
};

class Walk : public testing::TestWithParam<std::string> {};

TEST_P(Walk, EveryEventLeadsWhereTheTableSays) {
  const std::string& state = GetParam();
  const size_t column = std::find(kColumns.begin(), kColumns.end(), state) - kColumns.begin();
  EXPECT_EQ(kTable.size(), kEvents.size());
  for (const auto& [event, feed] : kEvents) {
    SCOPED_TRACE(::testing::Message() << state << " x " << event);
    JobStory story({.min = 2, .max = 3});
    kStates.at(state)(story);
    ASSERT_EQ(JobStateName(story.machine().state()), state);
    feed(story);
    const std::string after = JobStateName(story.machine().state());
    ASSERT_TRUE(kTable.count(event) == 1) << "no row; it led to " << after;
    EXPECT_EQ(after, kLetters.at(kTable.at(event).at(2 * column)));
    // Whatever it was, the machine can be asked, and when everybody falls silent no stop is left
    // without an answer.
    EXPECT_EQ(story.machine().Status(story.now()).run_id, "j");
    for (const char* agent : {"a", "b", "c"}) story.Silence(agent);
    story.Lapse(200'000);
    EXPECT_NE(story.machine().state(), JobState::kStopping);
  }
}

INSTANTIATE_TEST_SUITE_P(JobMachine, Walk, testing::ValuesIn(kColumns),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster::rendezvous
