#include "worker_sdk/data/distributed_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using Options = DistributedSampler::Options;

std::vector<DistributedSampler> MakeWorld(Options options) {
  std::vector<DistributedSampler> world;
  for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
    world.emplace_back(options);
  }
  return world;
}

// One step on every rank; the samples it used, or nothing at the end of an epoch.
std::vector<uint64_t> Step(std::vector<DistributedSampler>& world, uint64_t batch) {
  std::vector<uint64_t> used;
  for (DistributedSampler& rank : world) {
    const std::vector<uint64_t> mine = rank.NextBatch(batch);
    rank.StepCompleted(mine.size());
    used.insert(used.end(), mine.begin(), mine.end());
  }
  return used;
}

std::vector<uint64_t> RestOfEpoch(std::vector<DistributedSampler>& world, uint64_t batch) {
  std::vector<uint64_t> all;
  while (true) {
    const std::vector<uint64_t> used = Step(world, batch);
    if (used.empty()) return all;
    all.insert(all.end(), used.begin(), used.end());
  }
}

std::map<uint64_t, int> Count(const std::vector<uint64_t>& samples) {
  std::map<uint64_t, int> counts;
  for (uint64_t sample : samples) ++counts[sample];
  return counts;
}

TEST(DistributedSampler, SharesEverySampleOutOnce) {
  auto world = MakeWorld({.dataset_size = 60, .world_size = 4});
  const auto counts = Count(RestOfEpoch(world, 7));
  EXPECT_EQ(counts.size(), 60U);
  for (const auto& [sample, times] : counts) EXPECT_EQ(times, 1) << sample;
}

TEST(DistributedSampler, FillsUpFromTheBeginningOfTheSequence) {
  auto world = MakeWorld({.dataset_size = 10, .world_size = 4, .shuffle = false});
  EXPECT_EQ(RestOfEpoch(world, 3), (std::vector<uint64_t>{0, 4, 8, 1, 5, 9, 2, 6, 0, 3, 7, 1}));
}

TEST(DistributedSampler, LeavesTheOddRestOutWithDropLast) {
  auto world =
      MakeWorld({.dataset_size = 10, .world_size = 4, .shuffle = false, .drop_last = true});
  EXPECT_EQ(RestOfEpoch(world, 3), (std::vector<uint64_t>{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(DistributedSampler, ServesWorldsLargerThanTheData) {
  auto world = MakeWorld({.dataset_size = 3, .world_size = 8, .shuffle = false});
  EXPECT_EQ(RestOfEpoch(world, 5), (std::vector<uint64_t>{0, 1, 2, 0, 1, 2, 0, 1}));
  auto dropping =
      MakeWorld({.dataset_size = 3, .world_size = 8, .shuffle = false, .drop_last = true});
  EXPECT_TRUE(RestOfEpoch(dropping, 5).empty());
}

TEST(DistributedSampler, AnEmptyDataSetHasEmptyEpochs) {
  DistributedSampler sampler({.dataset_size = 0});
  EXPECT_TRUE(sampler.NextBatch(4).empty());
  EXPECT_TRUE(sampler.NextBatch(4).empty());
  EXPECT_EQ(sampler.state().epoch, 2);
}

TEST(DistributedSampler, ShufflesAnewInEachEpochAndForEachSeed) {
  DistributedSampler sampler({.dataset_size = 100, .seed = 1});
  const auto first = sampler.NextBatch(100);
  ASSERT_TRUE(sampler.NextBatch(100).empty());
  const auto second = sampler.NextBatch(100);
  EXPECT_EQ(sampler.epoch(), 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(Count(first), Count(second));
  EXPECT_NE(DistributedSampler({.dataset_size = 100, .seed = 2}).NextBatch(100), first);
  EXPECT_EQ(DistributedSampler({.dataset_size = 100, .seed = 1}).NextBatch(100), first);
}

TEST(DistributedSampler, AStepUsesTheSameSamplesInEveryWorld) {
  auto two = MakeWorld({.dataset_size = 96, .world_size = 2, .seed = 5});
  auto three = MakeWorld({.dataset_size = 96, .world_size = 3, .seed = 5});
  EXPECT_EQ(Count(Step(two, 6)), Count(Step(three, 4)));
}

TEST(DistributedSampler, CountsWhatStepsCompletedNotWhatWasFetched) {
  DistributedSampler sampler({.dataset_size = 100, .world_size = 2});
  const auto first = sampler.NextBatch(5);
  const auto second = sampler.NextBatch(5);
  EXPECT_EQ(sampler.state().position, 0U);
  sampler.StepCompleted(5);
  EXPECT_EQ(sampler.state().position, 10U);

  DistributedSampler resumed({.dataset_size = 100, .world_size = 2});
  ASSERT_TRUE(resumed.Restore(sampler.state()).ok());
  EXPECT_EQ(resumed.NextBatch(5), second);
}

TEST(DistributedSampler, MayFetchAheadIntoTheNextEpoch) {
  DistributedSampler sampler({.dataset_size = 10});
  sampler.NextBatch(6);
  sampler.NextBatch(6);
  ASSERT_TRUE(sampler.NextBatch(6).empty());
  const auto next_epoch = sampler.NextBatch(6);
  sampler.StepCompleted(6);
  EXPECT_EQ(sampler.state().epoch, 0);
  EXPECT_EQ(sampler.state().position, 6U);
  sampler.StepCompleted(4);
  EXPECT_EQ(sampler.state().epoch, 1);
  EXPECT_EQ(sampler.state().position, 0U);
  DistributedSampler resumed({.dataset_size = 10});
  ASSERT_TRUE(resumed.Restore(sampler.state()).ok());
  EXPECT_EQ(resumed.NextBatch(6), next_epoch);
  sampler.StepCompleted(6);
  EXPECT_EQ(sampler.state().position, 6U);
}

// Killed and resumed after every single step: the run as a whole sees what an undisturbed one sees,
// ends of epochs included.
TEST(DistributedSampler, ResumesAnywhereAsIfNothingHadHappened) {
  for (bool drop_last : {false, true}) {
    const Options options{.dataset_size = 53, .world_size = 3, .seed = 8, .drop_last = drop_last};
    auto straight = MakeWorld(options);
    auto broken = MakeWorld(options);
    for (int step = 0; step < 40; ++step) {
      SCOPED_TRACE(step);
      const SamplerState state = broken[0].state();
      broken = MakeWorld(options);
      for (DistributedSampler& rank : broken) ASSERT_TRUE(rank.Restore(state).ok());
      const auto expected = Step(straight, 4);
      ASSERT_EQ(Step(broken, 4), expected);
      for (DistributedSampler& rank : broken) ASSERT_EQ(rank.state(), straight[0].state());
    }
  }
}

TEST(DistributedSampler, AtTheEndOfAnEpochItStillSaysSoAfterAResume) {
  DistributedSampler sampler({.dataset_size = 8});
  sampler.StepCompleted(sampler.NextBatch(8).size());
  DistributedSampler resumed({.dataset_size = 8});
  ASSERT_TRUE(resumed.Restore(sampler.state()).ok());
  EXPECT_TRUE(resumed.NextBatch(8).empty());
  EXPECT_EQ(resumed.NextBatch(8).size(), 8U);
}

// 2 -> 3 -> 1 -> 4 ranks within one epoch.
TEST(DistributedSampler, InAnotherWorldTheRestComesExactlyOnce) {
  Options options{.dataset_size = 120, .world_size = 2, .seed = 3};
  auto world = MakeWorld(options);
  std::vector<uint64_t> used;
  const auto run = [&](uint64_t batch, int steps) {
    for (int i = 0; i < steps; ++i) {
      const auto step = Step(world, batch);
      used.insert(used.end(), step.begin(), step.end());
    }
  };
  const auto change = [&](int world_size) {
    const SamplerState state = world[0].state();
    options.world_size = world_size;
    world = MakeWorld(options);
    for (DistributedSampler& rank : world) ASSERT_TRUE(rank.Restore(state).ok());
  };
  run(8, 2);  // 32 of 120
  change(3);
  run(4, 3);  // 68
  change(1);
  run(4, 2);  // 76
  change(4);
  const auto rest = RestOfEpoch(world, 6);  // 44 = 4 * 11
  used.insert(used.end(), rest.begin(), rest.end());
  const auto counts = Count(used);
  EXPECT_EQ(counts.size(), 120U);
  for (const auto& [sample, times] : counts) EXPECT_EQ(times, 1) << sample;
}

TEST(DistributedSampler, InAnotherWorldUnevenRestsAreFilledUpOrDropped) {
  for (bool drop_last : {false, true}) {
    Options options{.dataset_size = 23, .world_size = 2, .drop_last = drop_last};
    auto world = MakeWorld(options);
    std::vector<uint64_t> used = Step(world, 4);  // 15 are left: 4 ranks get 3 or 4 each
    const SamplerState state = world[1].state();
    options.world_size = 4;
    world = MakeWorld(options);
    for (DistributedSampler& rank : world) {
      ASSERT_TRUE(rank.Restore(state).ok());
      EXPECT_EQ(rank.remaining(), drop_last ? 3U : 4U);
    }
    const auto rest = RestOfEpoch(world, 100);
    used.insert(used.end(), rest.begin(), rest.end());
    EXPECT_EQ(Count(used).size(), drop_last ? 20U : 23U);
    EXPECT_EQ(used.size(), drop_last ? 20U : 24U);
  }
}

TEST(DistributedSampler, AFilledUpEpochIsOverInAnyWorld) {
  auto world = MakeWorld({.dataset_size = 10, .world_size = 4});
  Step(world, 3);
  const SamplerState state = world[0].state();
  EXPECT_EQ(state.position, 12U);
  DistributedSampler alone({.dataset_size = 10});
  ASSERT_TRUE(alone.Restore(state).ok());
  EXPECT_TRUE(alone.NextBatch(1).empty());
  EXPECT_EQ(alone.NextBatch(20).size(), 10U);
}

TEST(DistributedSampler, TakesTheSeedOfTheState) {
  DistributedSampler sampler({.dataset_size = 50, .seed = 1});
  DistributedSampler other({.dataset_size = 50, .seed = 2});
  ASSERT_TRUE(other.Restore(sampler.state()).ok());
  EXPECT_EQ(other.NextBatch(50), sampler.NextBatch(50));
}

TEST(DistributedSampler, RefusesAStateOfOtherDataOrAnImpossibleOne) {
  DistributedSampler sampler({.dataset_size = 10, .seed = 4});
  const SamplerState good = sampler.state();
  const auto code = [&](auto change) {
    SamplerState state = good;
    change(state);
    return sampler.Restore(state).code();
  };
  EXPECT_EQ(code([](SamplerState& s) { s.dataset_size = 11; }), StatusCode::kFailedPrecondition);
  EXPECT_EQ(code([](SamplerState& s) { s.shuffle = false; }), StatusCode::kFailedPrecondition);
  EXPECT_EQ(code([](SamplerState& s) { s.epoch = -1; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](SamplerState& s) { s.world_size = 0; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](SamplerState& s) { s.position = 11; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](SamplerState& s) { s.position = ~uint64_t{0}; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler.state(), good);
  EXPECT_NE(sampler.Restore({.dataset_size = 11}).message().find("11"), std::string::npos);
}

TEST(DistributedSamplerDeathTest, MoreStepsThanBatchesAreABug) {
  DistributedSampler sampler({.dataset_size = 10});
  sampler.NextBatch(3);
  EXPECT_DEATH(sampler.StepCompleted(4), "broken invariant");
}

}  // namespace
}  // namespace muster
