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

TEST(Text, QuotesTheBeginningOfALongText) {
  EXPECT_EQ(InQuotes(""), "\"\"");
  EXPECT_EQ(InQuotes("a b"), "\"a b\"");
  EXPECT_EQ(InQuotes(std::string(200, 'k')), Cat("\"", std::string(200, 'k'), "\""));
  EXPECT_EQ(InQuotes(std::string(201, 'k')), Cat("\"", std::string(100, 'k'), "...\" (201 bytes)"));
  EXPECT_EQ(InQuotes("a\nb\t\x7f"), "\"a\\x0ab\\x09\\x7f\"");
  std::string umlauts = "x";
  for (int i = 0; i < 150; ++i) umlauts += "\xc3\xa4";
  EXPECT_EQ(InQuotes(umlauts), Cat("\"", umlauts.substr(0, 99), "...\" (301 bytes)"));
}

}  // namespace
}  // namespace muster::launcher
