#include "agent/process/line_filter.h"

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

TEST(LineFilter, KeepsLinesThatHoldOneOfTheTexts) {
  LineFilter filter("[r0]:", {"loss", "acc"});
  std::string out;
  filter.Feed("epoch 1\nloss 0.5\nac", &out);
  EXPECT_EQ(out, "[r0]:loss 0.5\n");
  filter.Feed("c 0.9 loss\n\nbl", &out);
  EXPECT_EQ(out, "[r0]:loss 0.5\n[r0]:acc 0.9 loss\n");
  filter.Feed("oss", &out);
  filter.End(&out);
  EXPECT_EQ(out, "[r0]:loss 0.5\n[r0]:acc 0.9 loss\n[r0]:bloss\n");
  filter.End(&out);
  EXPECT_EQ(out, "[r0]:loss 0.5\n[r0]:acc 0.9 loss\n[r0]:bloss\n");
}

TEST(LineFilter, AnEmptyTextIsInEveryLine) {
  LineFilter filter("", {""});
  std::string out;
  filter.Feed("a\n\nb\n", &out);
  EXPECT_EQ(out, "a\n\nb\n");
}

TEST(LineFilter, OfALongLineTheBeginningCounts) {
  LineFilter filter("", {"end", "begin"});
  std::string out;
  filter.Feed("begin" + std::string(kMaxFilteredLine, 'x') + "end\n", &out);
  EXPECT_EQ(out.size(), kMaxFilteredLine + 1);
  out.clear();
  filter.Feed(std::string(kMaxFilteredLine, 'x'), &out);
  filter.Feed("end\nend\n", &out);
  EXPECT_EQ(out, "end\n");
}

TEST(LineFilter, BytesAreNotDecoded) {
  LineFilter filter("", {"\xff"});
  std::string out;
  filter.Feed(std::string("\0a\xff\nb\n", 6), &out);
  EXPECT_EQ(out, std::string("\0a\xff\n", 4));
}

}  // namespace
}  // namespace muster::agent
