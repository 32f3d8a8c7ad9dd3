#include "launcher/text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

TEST(Text, PutsPartsTogether) {
  EXPECT_EQ(Cat("a", std::string("b"), std::string_view("c"), 7, -1), "abc7-1");
  EXPECT_EQ(Cat(), "");
}

TEST(Text, SplitsAtEverySeparator) {
  EXPECT_THAT(Split("a,,b", ','), testing::ElementsAre("a", "", "b"));
  EXPECT_THAT(Split("", ','), testing::ElementsAre(""));
}

TEST(Text, StripsBlanks) {
  EXPECT_EQ(Strip(" \ta b\n"), "a b");
  EXPECT_EQ(Strip(" \n"), "");
}

}  // namespace
}  // namespace muster::launcher
