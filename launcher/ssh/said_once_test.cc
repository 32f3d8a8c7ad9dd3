#include "launcher/ssh/said_once.h"

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

TEST(SaidOnce, IsNewsOnceForAllHosts) {
  SaidOnce said;
  EXPECT_TRUE(said.IsNews("a", "x"));
  EXPECT_FALSE(said.IsNews("b", "x"));
  EXPECT_TRUE(said.IsNews("b", "y"));
  EXPECT_FALSE(said.IsNews("a", "y"));
}

TEST(SaidOnce, IsNewsAgainWhenAHostRepeatsIt) {
  SaidOnce said;
  EXPECT_TRUE(said.IsNews("a", "x"));
  EXPECT_TRUE(said.IsNews("a", "x"));
  EXPECT_FALSE(said.IsNews("b", "x"));
  EXPECT_FALSE(said.IsNews("b", "x"));
  EXPECT_TRUE(said.IsNews("b", "x"));
}

TEST(SaidOnce, ForgetsBeyondItsBound) {
  SaidOnce said;
  for (size_t i = 0; i < kMostSentences; ++i) EXPECT_TRUE(said.IsNews("a", std::to_string(i)));
  EXPECT_FALSE(said.IsNews("b", "0"));
  EXPECT_TRUE(said.IsNews("a", "one more"));
  EXPECT_TRUE(said.IsNews("b", "0"));
}

}  // namespace
}  // namespace muster::launcher
