#include "rendezvous/core/restart_ledger.h"

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

TEST(RestartLedger, EachFailureTakesOneRestartUntilNoneIsLeft) {
  RestartLedger ledger({});
  EXPECT_TRUE(ledger.Charge(2));
  EXPECT_EQ(ledger.charged(), 1);
  EXPECT_TRUE(ledger.Charge(2));
  EXPECT_FALSE(ledger.Charge(2));
  EXPECT_EQ(ledger.charged(), 2) << "what is refused is not charged";
}

TEST(RestartLedger, NoRestartsAreLeftFromNone) {
  RestartLedger ledger({});
  EXPECT_FALSE(ledger.Charge(0));
  EXPECT_EQ(ledger.charged(), 0);
}

TEST(RestartLedger, TheHighestReportOfAnAgentCounts) {
  RestartLedger ledger({});
  ledger.LearnCharged(2);
  ledger.LearnCharged(1);
  EXPECT_EQ(ledger.charged(), 2);
  EXPECT_FALSE(ledger.Charge(2));
}

TEST(RestartLedger, ANodeThatIsLostTooOftenIsSetAside) {
  RestartLedger ledger({.max_node_failures = 2});
  EXPECT_FALSE(ledger.NodeLost("a", seconds(1)));
  EXPECT_FALSE(ledger.NodeLost("b", seconds(1)));
  EXPECT_FALSE(ledger.NodeLost("a", seconds(1)));
  EXPECT_FALSE(ledger.IsSetAside("a"));
  EXPECT_TRUE(ledger.NodeLost("a", seconds(1)));
  EXPECT_TRUE(ledger.IsSetAside("a"));
  EXPECT_FALSE(ledger.IsSetAside("b"));
}

TEST(RestartLedger, AGoodUptimeForgivesEarlierLosses) {
  RestartLedger ledger({.max_node_failures = 1, .good_uptime = seconds(60)});
  EXPECT_FALSE(ledger.NodeLost("a", seconds(1)));
  EXPECT_FALSE(ledger.NodeLost("a", seconds(60)));
  EXPECT_TRUE(ledger.NodeLost("a", seconds(59)));
}

TEST(RestartLedger, ACommitForgivesEveryNode) {
  RestartLedger ledger({.max_node_failures = 1});
  ledger.NodeLost("a", seconds(1));
  ledger.NodeLost("a", seconds(1));
  ASSERT_TRUE(ledger.IsSetAside("a"));
  ledger.Committed();
  EXPECT_FALSE(ledger.IsSetAside("a"));
}

TEST(RestartLedger, WithoutALimitNoNodeIsSetAside) {
  RestartLedger ledger({});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(ledger.NodeLost("a", seconds(0)));
  EXPECT_FALSE(ledger.IsSetAside("a"));
}

}  // namespace
}  // namespace muster::rendezvous
