#include "rendezvous/core/failed_starts.h"

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

Instant At(int seconds) { return Instant() + std::chrono::seconds(seconds); }

TEST(FailedStarts, NamesEachNodeOnceWithItsLatestWords) {
  FailedStarts starts;
  EXPECT_EQ(starts.Text(), "");
  starts.Add(At(1), "b", "no program");
  starts.Add(At(2), "c", "no disk");
  starts.Add(At(3), "b", "no interpreter");
  EXPECT_EQ(starts.Text(),
            "node c could not start: no disk; node b could not start: no interpreter");
}

TEST(FailedStarts, WhoCameSinceIsNoLongerNamed) {
  FailedStarts starts;
  starts.Add(At(5), "b", "no program");
  starts.Came("b", At(4));
  starts.Came("c", At(9));
  EXPECT_FALSE(starts.empty()) << "another agent of that host was there before";
  starts.Came("b", At(6));
  EXPECT_TRUE(starts.empty());
}

TEST(FailedStarts, KeepsTheLatestFew) {
  FailedStarts starts;
  for (int i = 0; i < 6; ++i) starts.Add(At(i), std::to_string(i), "x");
  EXPECT_EQ(starts.Text().substr(0, 6), "node 2");
  starts.Clear();
  EXPECT_TRUE(starts.empty());
}

}  // namespace
}  // namespace muster::rendezvous
