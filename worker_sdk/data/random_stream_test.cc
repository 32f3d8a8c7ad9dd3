#include "worker_sdk/data/random_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace muster {
namespace {

// The sequence is part of the contract: a checkpoint's shuffle must be repeatable by every later
// version on every machine.
TEST(RandomStream, GivesTheSameNumbersForEver) {
  RandomStream random(1234, 5);
  EXPECT_EQ(random.Next(), 17625298522465717111U);
  EXPECT_EQ(random.Next(), 3721259612363653453U);
  const std::vector<uint64_t> order = RandomPermutation(10, 7, 3);
  EXPECT_EQ(order, (std::vector<uint64_t>{6, 8, 5, 9, 0, 4, 3, 1, 2, 7}));
}

TEST(RandomStream, DiffersBySeedAndByStream) {
  EXPECT_NE(RandomStream(1, 2).Next(), RandomStream(2, 1).Next());
  EXPECT_NE(RandomStream(0, 0).Next(), RandomStream(0, 1).Next());
  EXPECT_NE(RandomStream(0, 0).Next(), RandomStream(1, 0).Next());
}

TEST(RandomStream, IsEvenlySpreadBelowABound) {
  RandomStream random(9);
  std::array<int, 7> seen{};
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++seen[random.Below(seen.size())];
  // 10,000 are expected of each; 93 is one standard deviation.
  for (int count : seen) EXPECT_NEAR(count, 10000, 500);
}

TEST(RandomStream, UniformStaysBelowOne) {
  RandomStream random(11);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const float value = random.Uniform();
    ASSERT_GE(value, 0.0F);
    ASSERT_LT(value, 1.0F);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.01);
}

TEST(RandomStream, GoesOnFromASavedState) {
  RandomStream random(3);
  random.Next();
  const std::string state = random.Save();
  const uint64_t next = random.Next();
  RandomStream other(99);
  ASSERT_TRUE(other.Restore(state));
  EXPECT_EQ(other.Next(), next);
}

TEST(RandomStream, RefusesWhatIsNoState) {
  RandomStream random(3);
  const RandomStream before = random;
  EXPECT_FALSE(random.Restore(""));
  EXPECT_FALSE(random.Restore(std::string(31, 'x')));
  EXPECT_FALSE(random.Restore(std::string(32, '\0')));
  EXPECT_EQ(random, before);
}

TEST(RandomPermutation, HoldsEveryNumberOnce) {
  std::vector<uint64_t> order = RandomPermutation(1000, 1, 1);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i);
  EXPECT_TRUE(RandomPermutation(0, 1, 1).empty());
}

}  // namespace
}  // namespace muster
