// The cluster under faults: many seeds in which no rule may break, seeds that once broke one, and a
// few faults alone, with what they may cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/version.h"
#include "tests/simulation/fault_plan.h"
#include "tests/simulation/sim_world.h"

namespace muster::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int Median(std::vector<int> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The end of the trace, and how to see all of it.
std::string Explain(uint64_t seed) {
  constexpr size_t kLastLines = 40;
  RunResult result = RunSeed({.seed = seed, .is_traced = true});
  std::string text = "seed " + std::to_string(seed) + ": " + result.broken + "\n";
  size_t first = result.trace.size() > kLastLines ? result.trace.size() - kLastLines : 0;
  for (size_t i = first; i < result.trace.size(); ++i) text += result.trace[i] + "\n";
  return text + "again: simulate --seed=" + std::to_string(seed) + " --trace";
}

TEST(Simulation, NoRuleBreaksWhateverFails) {
  constexpr uint64_t kSeeds = 400;
  std::vector<int> kills, partitions, stalls, restarts, rounds;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RunResult result = RunSeed({.seed = seed});
    ASSERT_EQ(result.broken, "") << Explain(seed);
    kills.push_back(result.kills);
    partitions.push_back(result.partitions);
    stalls.push_back(result.stalls);
    restarts.push_back(result.rendezvous_restarts);
    rounds.push_back(result.rounds);
  }
  // Otherwise the seeds prove little.
  EXPECT_GE(Median(kills), 5);
  EXPECT_GE(Median(partitions), 1);
  EXPECT_GE(Median(stalls), 1);
  EXPECT_GE(Median(restarts), 1);
  EXPECT_GE(Median(rounds), 3);
}

TEST(Simulation, EqualSeedsGiveEqualRuns) {
  for (uint64_t seed : {1, 2, 3, 4, 5}) {
    RunResult first = RunSeed({.seed = seed});
    RunResult second = RunSeed({.seed = seed, .is_traced = true});
    EXPECT_EQ(first.fingerprint, second.fingerprint) << "seed " << seed;
    EXPECT_EQ(first.events, second.events);
    EXPECT_FALSE(second.trace.empty());
  }
}

// Each broke a rule once: followers of a lost node were charged; a superseded agent slept for ever;
// a claimant of a node rank was let in with a lease that was nearly over; the guardian raced with
// its agent; late reports took commits back.
TEST(Simulation, SeedsThatOnceBrokeARule) {
  for (uint64_t seed :
       {3,     17,    58,     86,      454,     1299,    1412,    1493,   1650,  1732,
        1806,  2146,  2623,   2688,    3110,    5531,    6131,    8364,   9414,  13801,
        18805, 25640, 31013,  32118,   36052,   40859,   41175,   47712,  48198, 52045,
        57960, 66302, 66333,  67046,   69720,   71280,   75767,   89068,  94551, 1272,
        2203,  13204, 514032, 1000787, 1039688, 1046255, 1052044, 1071431}) {
    EXPECT_EQ(RunSeed({.seed = seed}).broken, "") << Explain(seed);
  }
}

// ---- one fault alone -----------------------------------------------------------------------

FaultPlan CalmPlan(int nodes, int min_nodes) {
  FaultPlan plan;
  plan.options.terms.run_id = "sim";
  plan.options.terms.version = kVersion;
  plan.options.terms.min_nodes = min_nodes;
  plan.options.terms.max_nodes = nodes;
  plan.options.terms.max_restarts = 1;
  plan.options.terms.join_timeout = seconds(10);
  plan.options.terms.last_call_timeout = seconds(1);
  plan.options.reconnect_timeout = seconds(10);
  plan.options.shutdown_timeout = milliseconds(500);
  plan.options.least_delay = milliseconds(1);
  plan.options.most_delay = milliseconds(2);
  plan.options.term_takes = milliseconds(50);
  plan.options.checkpoint_every = milliseconds(500);
  plan.options.saves_when_asked = true;
  plan.options.works_for = seconds(12);
  for (int i = 0; i < nodes; ++i) {
    NodePlan node;
    node.name = "n" + std::to_string(i);
    node.worker_count = 2;
    plan.nodes.push_back(node);
  }
  return plan;
}

RunResult RunWith(FaultPlan plan, const std::vector<Fault>& faults) {
  plan.faults = faults;
  SetBounds(&plan);
  SimWorld world(plan, /*seed=*/1, /*is_traced=*/true);
  return world.Run();
}

Fault At(FaultKind kind, Duration at, Duration lasts = Duration(0)) {
  Fault fault;
  fault.kind = kind;
  fault.at = at;
  fault.lasts = lasts;
  return fault;
}

struct Cost {
  const char* name;
  Fault fault;
  int rounds;
  bool succeeds;
};

TEST(Simulation, AFaultAloneCostsWhatItShould) {
  const Cost kCosts[] = {
      {"a reset connection", At(FaultKind::kStreamReset, seconds(4)), 1, true},
      {"a stall within the lease", At(FaultKind::kRendezvousStall, seconds(4), milliseconds(900)),
       1, true},
      {"a restarted rendezvous", At(FaultKind::kRendezvousCrash, seconds(4), milliseconds(900)), 1,
       true},
      {"a frozen agent, within the lease",
       At(FaultKind::kAgentFrozen, seconds(4), milliseconds(900)), 1, true},
      {"a failed worker", At(FaultKind::kWorkerFails, seconds(4)), 2, true},
      {"a killed agent that nobody replaces", At(FaultKind::kAgentKilled, seconds(4)), 2, true},
      {"a machine without power", At(FaultKind::kPowerOff, seconds(4)), 2, true},
      // The others go on without it, and again with it when it is back.
      {"a frozen agent, past the lease", At(FaultKind::kAgentFrozen, seconds(4), seconds(5)), 3,
       true},
      {"a partition past the lease", At(FaultKind::kPartition, seconds(4), seconds(5)), 3, true},
      {"a drained node", At(FaultKind::kNodeDrained, seconds(4)), 2, true},
      {"a preempted node", At(FaultKind::kAgentStopped, seconds(4)), 2, true},
      {"a stopped host", At(FaultKind::kHostStopped, seconds(4)), 1, false},
      {"a user's stop everywhere", At(FaultKind::kAllStopped, seconds(4)), 1, false},
  };
  for (const Cost& cost : kCosts) {
    RunResult result = RunWith(CalmPlan(/*nodes=*/3, /*min_nodes=*/2), {cost.fault});
    std::string text;
    for (const std::string& line : result.trace) text += line + "\n";
    EXPECT_EQ(result.broken, "") << cost.name << "\n" << text;
    EXPECT_EQ(result.rounds, cost.rounds) << cost.name << "\n" << text;
    EXPECT_EQ(result.succeeded, cost.succeeds) << cost.name << "\n" << text;
  }
}

TEST(Simulation, NodesThatLeaveTogetherCostOneRound) {
  Fault second = At(FaultKind::kAgentStopped, milliseconds(4200));
  second.target = 1;
  RunResult result = RunWith(CalmPlan(/*nodes=*/4, /*min_nodes=*/2),
                             {At(FaultKind::kNodeDrained, seconds(4)), second});
  EXPECT_EQ(result.broken, "");
  EXPECT_EQ(result.rounds, 2);
  EXPECT_TRUE(result.succeeded);
}

TEST(Simulation, TheBudgetEndsTheJob) {
  RunResult result = RunWith(CalmPlan(2, 2), {At(FaultKind::kWorkerFails, seconds(3)),
                                              At(FaultKind::kWorkerKilled, seconds(5))});
  EXPECT_EQ(result.broken, "");
  EXPECT_EQ(result.rounds, 2);
  EXPECT_FALSE(result.succeeded);
}

TEST(Simulation, BelowMinTheJobEndsWhenNobodyComes) {
  RunResult result = RunWith(CalmPlan(2, 2), {At(FaultKind::kAgentKilled, seconds(3))});
  EXPECT_EQ(result.broken, "");
  EXPECT_EQ(result.rounds, 1);
  EXPECT_FALSE(result.succeeded);
}

}  // namespace
}  // namespace muster::simulation
