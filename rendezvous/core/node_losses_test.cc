#include "rendezvous/core/node_losses.h"

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kStart{std::chrono::hours(1)};

NodeLosses::Loss Loss(int limit, Duration uptime = seconds(1), Instant at = kStart) {
  return {.at = at, .uptime = uptime, .limit = limit};
}

TEST(NodeLosses, ANodeThatIsLostTooOftenIsSetAside) {
  NodeLosses losses({});
  EXPECT_FALSE(losses.Add("a", Loss(2)));
  EXPECT_FALSE(losses.Add("b", Loss(2)));
  EXPECT_EQ(losses.SetAsideUntil("a", kStart), std::nullopt);
  EXPECT_TRUE(losses.Add("a", Loss(2)));
  EXPECT_EQ(losses.SetAsideUntil("a", kStart), kStart + minutes(10));
  EXPECT_EQ(losses.SetAsideUntil("b", kStart), std::nullopt);
  EXPECT_EQ(losses.CountOf("a"), 2);
  EXPECT_EQ(losses.CountOf("c"), 0);
}

TEST(NodeLosses, AGoodUptimeForgivesEarlierLosses) {
  NodeLosses losses({});
  EXPECT_FALSE(losses.Add("a", Loss(2)));
  EXPECT_FALSE(losses.Add("a", Loss(2, seconds(60))));
  EXPECT_TRUE(losses.Add("a", Loss(2, seconds(59))));
}

TEST(NodeLosses, ACommitForgivesEveryNode) {
  NodeLosses losses({});
  ASSERT_TRUE(losses.Add("a", Loss(1)));
  losses.Committed();
  EXPECT_EQ(losses.SetAsideUntil("a", kStart), std::nullopt);
  EXPECT_FALSE(losses.Add("a", Loss(2)));
}

TEST(NodeLosses, TimeForgives) {
  NodeLosses losses({});
  losses.Add("a", Loss(2));
  ASSERT_TRUE(losses.Add("a", Loss(2)));
  const Instant later = kStart + minutes(10);
  EXPECT_NE(losses.SetAsideUntil("a", later - seconds(1)), std::nullopt);
  EXPECT_EQ(losses.SetAsideUntil("a", later), std::nullopt);
  EXPECT_FALSE(losses.Add("a", Loss(2, seconds(1), later))) << "it counts from one again";
}

TEST(NodeLosses, ALossWhileItIsNeededSetsItAsideForLonger) {
  NodeLosses losses({});
  ASSERT_TRUE(losses.Add("a", Loss(1)));
  ASSERT_TRUE(losses.Add("a", Loss(1, seconds(1), kStart + minutes(5))));
  EXPECT_EQ(losses.SetAsideUntil("a", kStart + minutes(10)), kStart + minutes(15));
}

TEST(NodeLosses, WithoutALimitNoNodeIsSetAside) {
  NodeLosses losses({});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(losses.Add("a", Loss(0)));
  EXPECT_EQ(losses.SetAsideUntil("a", kStart), std::nullopt);
}

}  // namespace
}  // namespace muster::rendezvous
