#include "tests/simulation/goodput.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "tests/simulation/large_job.h"
#include "tests/simulation/sim_random.h"

namespace muster::simulation {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr CheckpointCosts kCosts = {.interval = seconds(100),
                                    .pause = seconds(2),
                                    .until_committed = seconds(5),
                                    .restart = seconds(30)};

TEST(Goodput, ARoundKeepsWhatWasCommittedBeforeItEnded) {
  EXPECT_EQ(Kept(seconds(20), kCosts), seconds(0)) << "it hadn't begun to train";
  EXPECT_EQ(Kept(seconds(136), kCosts), seconds(0)) << "written, not committed";
  EXPECT_EQ(Kept(seconds(137), kCosts), seconds(100));
  EXPECT_EQ(Kept(seconds(30 + 3 * 102 + 5), kCosts), seconds(300));
}

TEST(Goodput, TheLastRoundLosesNothing) {
  Timeline timeline;
  timeline.horizon = seconds(1000);
  timeline.stretches = {{seconds(0), seconds(137), 10}, {seconds(200), seconds(1000), 5}};
  // 100 s of all, then half of 770 s less seven pauses.
  EXPECT_DOUBLE_EQ(UsefulFraction(timeline, 10, kCosts), (100 + (770 - 14) / 2.0) / 1000);
}

TEST(Goodput, ARoundThatEndedBeforeItBeganCountsNothing) {
  Timeline timeline;
  timeline.horizon = seconds(1000);
  timeline.stretches = {{seconds(300), seconds(290), 10}};
  EXPECT_EQ(UsefulFraction(timeline, 10, kCosts), 0);
}

TEST(Goodput, OverlaidCheckpointsMeetTheClosedForm) {
  // Failures at random, each followed by an outage that another failure begins anew.
  constexpr Duration kMtbf = minutes(20), kOutage = seconds(5);
  SimRandom random(3);
  Timeline timeline;
  CheckpointCosts costs = kCosts;
  costs.until_committed = Duration(0);
  Duration now{0};
  for (int i = 0; i < 20'000; ++i) {
    const double uniform = (random.Below(1 << 30) + 1.0) / (1 << 30);
    const Duration next(static_cast<int64_t>(-std::log(uniform) * kMtbf.count()));
    timeline.stretches.push_back({now + kOutage, now + next, 1});
    now += next;
  }
  timeline.horizon = now + seconds(1);
  EXPECT_NEAR(UsefulFraction(timeline, 1, costs), ExpectedFraction(kMtbf, kOutage, costs), 0.01);
}

LargeJobOptions SmallJob() {
  LargeJobOptions options;
  options.nodes = 40;
  options.min_nodes = 30;
  options.spares = 8;
  // A failure every 20 minutes.
  options.node_mtbf = minutes(20) * (options.nodes + options.spares);
  options.repair = minutes(10);
  options.horizon = hours(24 * 14);
  return options;
}

TEST(LargeJob, MeetsTheClosedFormWhereNothingElseHappens) {
  // Spares at all times, so that nothing but failures of nodes in the round ends a round.
  LargeJobOptions options = SmallJob();
  CheckpointCosts costs = kCosts;
  costs.until_committed = Duration(0);
  const LargeJobResult result = LargeJob(options).Run();
  EXPECT_EQ(result.broken, "");
  EXPECT_GT(result.failures, 800);
  EXPECT_NEAR(std::chrono::duration<double>(result.outage).count(), 2.504, 0.05)
      << "a lease of 3 s that was last renewed 0 to 1 s before the failure";
  const double expected = ExpectedFraction(options.node_mtbf / options.nodes, result.outage, costs);
  EXPECT_NEAR(UsefulFraction(result.timeline, options.nodes, costs), expected, 0.02);
}

TEST(LargeJob, LosesLessWhereFailuresAreNoticedSooner) {
  LargeJobOptions options = SmallJob();
  const Duration at_once = [&] {
    options.lease = std::nullopt;
    return LargeJob(options).Run().outage;
  }();
  EXPECT_GT(at_once, milliseconds(100)) << "the grace of a stream that ends";
  EXPECT_LT(at_once, milliseconds(150));
  double last = 1;
  for (int lease_s : {3, 30, 120}) {
    options.lease = seconds(lease_s);
    const LargeJobResult result = LargeJob(options).Run();
    EXPECT_EQ(result.broken, "");
    const double useful = UsefulFraction(result.timeline, options.nodes, kCosts);
    EXPECT_LT(useful, last);
    last = useful;
  }
}

TEST(LargeJob, WithoutSparesEachReturnEndsARoundToo) {
  LargeJobOptions options = SmallJob();
  const LargeJobResult with = LargeJob(options).Run();
  options.spares = 0;
  const LargeJobResult without = LargeJob(options).Run();
  EXPECT_EQ(with.broken + without.broken, "");
  EXPECT_NEAR(static_cast<double>(with.rounds) / with.failures, 0.84, 0.1)
      << "40 of 48 nodes are in the round";
  EXPECT_GT(without.rounds, 1.7 * without.failures);
  EXPECT_LT(UsefulFraction(without.timeline, options.nodes, kCosts),
            UsefulFraction(with.timeline, options.nodes, kCosts));
}

TEST(LargeJob, HoldsItsRulesWhereFailuresFallIntoOutages) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    LargeJobOptions options = SmallJob();
    options.node_mtbf = seconds(10) * (options.nodes + options.spares);
    options.repair = seconds(40);
    options.message_takes = milliseconds(20);
    options.horizon = hours(3);
    options.seed = seed;
    const LargeJobResult result = LargeJob(options).Run();
    EXPECT_EQ(result.broken, "") << "seed " << seed;
    EXPECT_GT(result.rounds, 200) << "seed " << seed;
  }
}

TEST(LargeJob, IsTheSameForTheSameSeed) {
  const LargeJobResult a = LargeJob(SmallJob()).Run(), b = LargeJob(SmallJob()).Run();
  EXPECT_EQ(a.messages, b.messages);
  EXPECT_EQ(a.outage, b.outage);
}

}  // namespace
}  // namespace muster::simulation
