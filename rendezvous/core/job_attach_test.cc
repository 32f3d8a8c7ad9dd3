// Who may come into a job and which place it gets: programs that differ, nodes that differ, node
// ranks and topology.
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/core/job_machine.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

int GroupRankOf(JobStory& story, const std::string& agent) {
  const auto* start = story.Last<StartRound>(agent);
  return start == nullptr ? -1 : start->group_rank.value;
}

NodeFacts Facts(const std::string& driver) {
  NodeFacts facts;
  facts.driver_version = driver;
  facts.wall_time_ms = 1'700'000'000'000;
  return facts;
}

NodeFacts At(const std::string& topology) {
  NodeFacts facts;
  facts.topology = topology;
  return facts;
}

TEST(JobAttach, ManyWhoWaitAreToldLessOften) {
  JobStory story({.min = 2100, .max = 2100, .last_call_ms = 0});
  for (int i = 0; i < 2000; ++i) {
    // Told apart by the first letter in stories, and by the life.
    story.Attach(static_cast<char>('a' + i / 100) + std::to_string(i), {.life = i % 100});
  }
  story.Lapse(1000);
  const int told = story.CountOf<Notice>("a0");
  story.Attach("z");
  story.Lapse(1900);
  EXPECT_EQ(story.CountOf<Notice>("a0"), told);
  story.Lapse(200);
  EXPECT_EQ(story.CountOf<Notice>("a0"), told + 1);
}

// ---- programs ------------------------------------------------------------------------------

TEST(JobAttach, TwoJobsWithOneRunIdAreToldApartByTheirPrograms) {
  JobStory story({});
  story.Attach("a", {.program = "train.py"});
  story.Attach("b", {.program = "eval.py"});
  ASSERT_NE(story.Last<Refused>("b"), nullptr);
  EXPECT_EQ(story.Last<Refused>("b")->code, RefusalCode::kDisagrees);
  EXPECT_EQ(story.Last<Refused>("b")->message,
            "job j: node b has the program \"eval.py\", but node a opened the job with "
            "\"train.py\"; give the same command on every node, another --rdzv-id for another job, "
            "or --allow-other-programs everywhere");
  EXPECT_EQ(story.machine().state(), JobState::kGathering);
}

TEST(JobAttach, NodesOfAStaticJobMayHaveProgramsOfTheirOwn) {
  JobStory story({.is_static = true});
  story.Attach("a", {.node_rank = 0, .program = "train.py --node 0"});
  story.Attach("b", {.node_rank = 1, .program = "train.py --node 1"});
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  const std::string sentence =
      "node b has the program \"train.py --node 1\", but node a opened the job with \"train.py "
      "--node 0\"";
  ASSERT_NE(story.Last<Notice>("b"), nullptr);
  EXPECT_EQ(story.Last<Notice>("b")->text, sentence);
}

TEST(JobAttach, WhoWasInARoundPrevailsOverWhoOpenedTheJobAtARestartedRendezvous) {
  JobStory story({.min = 1, .max = 2, .startup_quiet_ms = 1000});
  story.Attach("a", {.program = "train.py"});
  story.Attach("b", {.program = "train.py"});
  story.Lapse(1000);
  ASSERT_EQ(story.world("a").round, RoundId(1));
  story.RestartRendezvous();
  story.Attach("c", {.program = "eval.py"});
  story.Attach("d", {.program = "train.py"});
  ASSERT_NE(story.Last<Refused>("d"), nullptr) << "c opened it, as far as is known";
  story.Attach("a", {.is_running = true, .program = "train.py"});
  story.Attach("b", {.is_running = true, .program = "train.py"});
  EXPECT_EQ(story.Last<Refused>("a"), nullptr);
  EXPECT_EQ(story.Last<StopRound>("a"), nullptr);
  ASSERT_NE(story.Last<Refused>("c"), nullptr);
  EXPECT_EQ(story.Last<Refused>("c")->message,
            "job j: node c has the program \"eval.py\", but node a opened the job with "
            "\"train.py\"; give the same command on every node, another --rdzv-id for another job, "
            "or --allow-other-programs everywhere");
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobAttach, ASpareFormsNoWorldBesideOneThatARestartedRendezvousHasNotHeardOf) {
  for (bool do_they_come : {true, false}) {
    for (bool has_record : {true, false}) {
      JobStory story({.min = 1, .max = 2, .last_call_ms = 0, .startup_quiet_ms = 1000});
      for (const char* agent : {"a", "b", "c"}) story.Attach(agent);
      story.Lapse(1000);
      ASSERT_EQ(story.world("b").round, RoundId(1));
      ASSERT_NE(story.Last<Notice>("c"), nullptr);
      EXPECT_EQ(story.Last<Notice>("c")->running_round, RoundId(1));
      story.RestartRendezvous(has_record ? story.record() : JobRecord{});
      story.Attach("c", {.was_attached = true});
      story.Lapse(2500);
      EXPECT_EQ(story.Last<StartRound>("c"), nullptr) << "less than a lease";
      if (do_they_come) {
        for (const char* agent : {"a", "b"}) story.Attach(agent, {.is_running = true});
        story.Lapse(1000);
        EXPECT_EQ(story.machine().state(), JobState::kRunning);
        EXPECT_EQ(story.Last<StopRound>("a"), nullptr);
        EXPECT_EQ(story.Last<StartRound>("c"), nullptr);
      } else {
        story.Lapse(1000);
        EXPECT_EQ(story.world("c").round, RoundId(2)) << "the number of no other one";
      }
    }
  }
}

TEST(JobAttach, WhoLostThatRoundNeedntWaitForIt) {
  JobStory story({.min = 1, .max = 1, .startup_quiet_ms = 1000});
  for (const char* agent : {"a", "c"}) story.Attach(agent);
  story.Lapse(1000);
  story.RestartRendezvous();
  story.Attach("c", {.was_attached = true});
  story.Attach("a", {.was_attached = true});
  story.Lapse(1000);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobAttach, ASparePrevailsOverWhoWasNeverThere) {
  JobStory story({.min = 2, .max = 2, .join_timeout_ms = 3000, .startup_quiet_ms = 1000});
  story.Attach("c", {.program = "eval.py"});
  story.Attach("d", {.program = "train.py", .was_attached = true});
  EXPECT_NE(story.Last<Refused>("c"), nullptr);
  EXPECT_EQ(story.Last<Refused>("d"), nullptr);
  story.Lapse(4000);
  ASSERT_NE(story.Last<JobEnded>("d"), nullptr);
  EXPECT_EQ(story.Last<JobEnded>("d")->verdict.reason.find("node c"), std::string::npos)
      << "a stranger isn't missed: " << story.Last<JobEnded>("d")->verdict.reason;
}

TEST(JobAttach, AVeteranWithoutWorkersPrevailsTooButNotOverAnother) {
  JobStory story({.min = 2, .max = 2, .startup_quiet_ms = 1000});
  story.Attach("c", {.program = "eval.py"});
  story.Attach("e", {.highest_round = 3, .program = "train.py"});
  EXPECT_NE(story.Last<Refused>("c"), nullptr);
  story.Attach("a", {.highest_round = 3, .program = "eval.py"});
  EXPECT_NE(story.Last<Refused>("a"), nullptr) << "of two that know as much the first one holds";
  story.Attach("b", {.program = "train.py"});
  story.Lapse(1000);
  EXPECT_EQ(story.world("e").round, RoundId(4));
}

TEST(JobAttach, AnAgentThatComesBackToARestartedRendezvousIsComparedToo) {
  JobStory story({});
  story.Attach("a", {.program = "train.py"});
  story.Attach("b", {.program = "train.py"});
  story.RestartRendezvous();
  story.Attach("a", {.is_running = true, .program = "train.py"});
  story.Attach("c", {.program = "eval.py"});
  EXPECT_NE(story.Last<Refused>("c"), nullptr);
  story.Attach("b", {.is_running = true, .program = "train.py"});
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

// ---- facts ---------------------------------------------------------------------------------

TEST(JobAttach, ANodeThatDiffersIsToldOnceAndLetIn) {
  JobStory story({.min = 2, .max = 3, .shows_records = true});
  story.Attach("a", {.facts = Facts("550")});
  story.Attach("b", {.facts = Facts("535")});
  const std::string text = "nodes differ (the job goes on): driver 535 on node b and 550 on node a";
  const std::string trace = story.Trace();
  EXPECT_NE(trace.find("b< Notice: " + text), std::string::npos) << trace;
  EXPECT_NE(trace.find("# job j: " + text), std::string::npos) << trace;
  story.Lapse(5000);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  // As another incarnation, and on a new stream.
  story.Attach("b", {.life = 1, .facts = Facts("535")});
  story.Attach("b", {.life = 1, .facts = Facts("535")});
  EXPECT_EQ(story.Trace().find("nodes differ"), std::string::npos);
}

TEST(JobAttach, ClocksAreComparedByTheTimeOfReceipt) {
  JobStory story({.min = 3, .max = 3});
  story.Attach("a", {.facts = Facts("550")});
  story.Lapse(10'000);
  NodeFacts facts = Facts("550");
  facts.wall_time_ms += 10'000;
  story.Attach("b", {.facts = facts});
  EXPECT_EQ(story.Trace().find("nodes differ"), std::string::npos);
  story.Attach("c", {.facts = Facts("550")});
  EXPECT_EQ(story.Last<Notice>("c")->text,
            "nodes differ (the job goes on): the clock of node c is 10 s behind that of node a");
}

TEST(JobAttach, NodesAreComparedWithOneThatIsHere) {
  JobStory story({.min = 1, .max = 3});
  story.Attach("a", {.facts = Facts("535")});
  story.Attach("b", {.facts = Facts("550")});
  story.Leave("a");
  story.Trace();
  story.Attach("c", {.facts = Facts("550")});
  EXPECT_EQ(story.Trace().find("nodes differ"), std::string::npos);
}

TEST(JobAttach, OfVeryManyNodesThatDifferSomeAreRecorded) {
  JobStory story({.min = 100, .max = 100, .shows_records = true});
  story.Attach("a", {.facts = Facts("550")});
  for (int i = 0; i < 80; ++i) {
    // Told apart by the first letter in stories, by the life otherwise.
    story.Attach("b" + std::to_string(i), {.life = i, .facts = Facts("535")});
  }
  const std::string trace = story.Trace();
  int notices = 0;
  int records = 0;
  for (size_t at = trace.find("nodes differ"); at != std::string::npos;
       at = trace.find("nodes differ", at + 1)) {
    (trace[at - 2] == ':' && trace[at - 3] == 'e' ? notices : records) += 1;
  }
  EXPECT_EQ(notices, 80);
  EXPECT_EQ(records, 64);
}

// ---- too few -------------------------------------------------------------------------------

std::string ReasonOf(JobStory& story) {
  const auto* ended = story.Last<JobEnded>("a");
  return ended == nullptr ? "it has not ended" : ended->verdict.reason;
}

TEST(JobAttach, AStaticJobThatNobodyCompletesSaysWhichNodeRanksAreMissing) {
  JobStory story({.min = 4, .max = 4, .is_static = true, .join_timeout_ms = 1000});
  story.Attach("a", {.node_rank = 0});
  story.Attach("b", {.node_rank = 2});
  story.Lapse(2000);
  EXPECT_EQ(ReasonOf(story),
            "job j failed: 2 of 4 nodes are here (fewer nodes than needed for 1 s (join_timeout)); "
            "--node-rank 1, --node-rank 3 are missing; start at least 4, or lower MIN of --nnodes");
}

TEST(JobAttach, OfManyThatAreMissingTheFirstAreNamed) {
  JobStory story({.min = 100, .max = 100, .is_static = true, .join_timeout_ms = 1000});
  story.Attach("a", {.node_rank = 0});
  story.Lapse(2000);
  EXPECT_NE(ReasonOf(story).find("--node-rank 1, "), std::string::npos) << ReasonOf(story);
  EXPECT_NE(ReasonOf(story).find("--node-rank 8 and others are missing; "), std::string::npos)
      << ReasonOf(story);
}

TEST(JobAttach, AnElasticJobNamesTheNodesThatWereHereBefore) {
  JobStory story({.min = 2, .max = 3, .join_timeout_ms = 1000});
  for (const char* agent : {"a", "b", "c"}) story.Attach(agent);
  story.Break("b");
  story.Break("c");
  story.Lapse(150);
  story.StopDone("a");
  story.Lapse(2000);
  EXPECT_EQ(ReasonOf(story),
            "job j failed: 1 of 2..3 nodes is here (fewer nodes than needed for 1 s "
            "(join_timeout)); node b, node c are missing; start at least 2, or lower MIN of "
            "--nnodes");
}

TEST(JobAttach, NobodyIsCalledMissingWhoCameBackOrNeverWasHere) {
  JobStory story({.min = 3, .max = 3, .join_timeout_ms = 1000});
  story.Attach("a");
  story.Attach("b");
  story.Break("b");
  story.Lapse(150);
  story.Attach("b", {.life = 1});
  story.Lapse(2000);
  EXPECT_EQ(ReasonOf(story).find("missing"), std::string::npos) << ReasonOf(story);
}

// ---- places --------------------------------------------------------------------------------

TEST(JobAttach, ANodeRankIsHonouredInAnElasticJobToo) {
  JobStory story({.min = 3, .max = 3});
  story.Attach("a", {.node_rank = 2});
  story.Attach("b");
  story.Attach("c", {.node_rank = 0});
  EXPECT_EQ(GroupRankOf(story, "a"), 2);
  EXPECT_EQ(GroupRankOf(story, "b"), 1);
  EXPECT_EQ(GroupRankOf(story, "c"), 0);
}

TEST(JobAttach, TwoNodesWithOneRankAreRefusedByNameInAnElasticJob) {
  JobStory story({.min = 2, .max = 3});
  story.Attach("a", {.node_rank = 5});
  story.Attach("b", {.node_rank = 5});
  story.Send("a", Heartbeat{1});
  ASSERT_NE(story.Last<Refused>("b"), nullptr);
  EXPECT_EQ(story.Last<Refused>("b")->message,
            "job j: nodes a and b both have --node-rank=5; give each node its own");
}

TEST(JobAttach, AReplacementTakesTheNodeRankOfTheNodeThatIsGone) {
  JobStory story({.min = 2, .max = 2});
  story.Attach("a", {.node_rank = 0});
  story.Attach("b", {.node_rank = 1});
  ASSERT_EQ(story.machine().state(), JobState::kRunning);
  // The host is gone without a word; its replacement has its name and rank.
  const SessionId gone = story.session("b");
  story.Attach("b", {.node_rank = 1, .life = 1});
  EXPECT_EQ(story.Last<Refused>("b"), nullptr);
  story.Feed(SessionEnded{gone});
  story.StopDone("a");
  story.Attach("b", {.node_rank = 1, .life = 1});
  EXPECT_EQ(story.Last<Refused>("b"), nullptr);
  EXPECT_EQ(story.Last<StartRound>("b")->world.round, RoundId(2));
  EXPECT_EQ(GroupRankOf(story, "b"), 1);
}

TEST(JobAttach, AReplacementIsCountedBeforeARoundBeginsWithoutTheNodeThatIsGone) {
  JobStory story({.min = 1, .max = 2});
  story.Attach("a", {.node_rank = 0});
  story.Attach("b", {.node_rank = 1});
  story.WorkerFails("a", 0, 1);
  story.Break("b");
  story.StopDone("a");
  story.Attach("b", {.node_rank = 1, .life = 1});
  EXPECT_EQ(story.Last<StartRound>("a")->world.round, RoundId(2));
  EXPECT_EQ(story.Last<StartRound>("a")->group_world_size, 2);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
}

TEST(JobAttach, ANodeRankBeyondTheNodesThatAreLeftKeepsTheOrder) {
  JobStory story({.min = 1, .max = 3});
  story.Attach("a", {.node_rank = 2});
  story.Attach("b", {.node_rank = 0});
  story.Attach("c", {.node_rank = 1});
  ASSERT_EQ(GroupRankOf(story, "a"), 2);
  story.Leave("c");
  for (const char* agent : {"a", "b"}) story.StopDone(agent);
  story.Lapse(600);  // others might leave with it
  EXPECT_EQ(GroupRankOf(story, "b"), 0);
  EXPECT_EQ(GroupRankOf(story, "a"), 1);
}

TEST(JobAttach, NewcomersAreRankedByTopologyAndSurvivorsStay) {
  JobStory story({.min = 1, .max = 4});
  story.Attach("a", {.facts = At("rack10")});
  story.Attach("b", {.facts = At("rack2")});
  story.Lapse(5000);
  EXPECT_EQ(GroupRankOf(story, "b"), 0);
  EXPECT_EQ(GroupRankOf(story, "a"), 1);
  story.Attach("c", {.facts = At("rack3")});
  story.Attach("d", {.facts = At("rack1")});
  for (const char* agent : {"a", "b"}) story.StopDone(agent);
  EXPECT_EQ(GroupRankOf(story, "b"), 0);
  EXPECT_EQ(GroupRankOf(story, "a"), 1);
  EXPECT_EQ(GroupRankOf(story, "d"), 2);
  EXPECT_EQ(GroupRankOf(story, "c"), 3);
}

TEST(JobAttach, WhoOpensAnewAJobThatIsToBeRunAgainBeginsAfterItsRounds) {
  JobStory story({.min = 2, .max = 2});
  Attach newcomer;
  EXPECT_EQ(story.machine().OpenedAnewBy(newcomer), std::nullopt) << "it isn't over";
  story.Attach("a");
  story.Attach("b");
  story.Leave("a");
  story.StopDone("b");
  ASSERT_EQ(story.Last<JobEnded>("b")->verdict.exit_code, 75);
  EXPECT_EQ(story.machine().OpenedAnewBy(newcomer), std::nullopt) << "b is here";
  story.Break("b");
  ASSERT_TRUE(story.machine().IsDone());
  const auto anew = story.machine().OpenedAnewBy(newcomer);
  ASSERT_TRUE(anew.has_value());
  EXPECT_EQ(anew->world.round, RoundId(1));
  EXPECT_FALSE(anew->verdict.has_value());
  // One of it comes late to its end.
  Attach veteran;
  veteran.was_attached = true;
  EXPECT_EQ(story.machine().OpenedAnewBy(veteran), std::nullopt);
  Attach of_the_round;
  of_the_round.highest_round = RoundId(1);
  EXPECT_EQ(story.machine().OpenedAnewBy(of_the_round), std::nullopt);
}

TEST(JobAttach, NobodyOpensAnewAJobThatSucceeded) {
  JobStory story({.min = 1, .max = 1});
  story.Attach("a");
  story.Succeed("a");
  story.Break("a");
  ASSERT_TRUE(story.machine().IsDone());
  EXPECT_EQ(story.machine().OpenedAnewBy({}), std::nullopt);
}

}  // namespace
}  // namespace muster::rendezvous
