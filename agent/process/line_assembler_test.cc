#include "agent/process/line_assembler.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using namespace std::string_literals;

Instant At(int ms) { return Instant(milliseconds(1000000 + ms)); }

std::string Fed(LineAssembler* lines, std::string_view bytes, int ms = 0) {
  std::string out;
  lines->Feed(At(ms), bytes, &out);
  return out;
}

std::string Ticked(LineAssembler* lines, int ms) {
  std::string out;
  lines->Tick(At(ms), &out);
  return out;
}

std::string Ended(LineAssembler* lines) {
  std::string out;
  lines->End(&out);
  return out;
}

TEST(LineAssembler, PrefixesWholeLinesHoweverTheyArrive) {
  LineAssembler lines({.prefix = "[r0]: "});
  EXPECT_EQ(Fed(&lines, "a"), "");
  EXPECT_EQ(Fed(&lines, "b\ncd\n\ne"), "[r0]: ab\n[r0]: cd\n[r0]: \n");
  EXPECT_TRUE(lines.NextWakeup().IsNever());
  EXPECT_EQ(Ended(&lines), "[r0]: e\n");
  EXPECT_EQ(Ended(&lines), "");
}

TEST(LineAssembler, PassesBytesThatAreNoText) {
  LineAssembler lines({.prefix = "p "});
  std::string bytes = "a\n\377\376\n\0b\nafter\n"s;
  EXPECT_EQ(Fed(&lines, bytes), "p a\np \377\376\np \0b\np after\n"s);
}

TEST(LineAssembler, CutsLinesThatNeverEnd) {
  LineAssembler lines({.prefix = "p "});
  std::string shown = Fed(&lines, std::string(kMaxLineBytes * 2 + 5, 'x'));
  std::string cut = "p " + std::string(kMaxLineBytes, 'x') + "\n";
  EXPECT_EQ(shown, cut + cut);
  EXPECT_EQ(Fed(&lines, "\n"), "p xxxxx\n");
}

TEST(LineAssembler, ShowsRewritingOfALineTenTimesASecond) {
  LineAssembler lines({.prefix = "p ", .is_terminal = true});
  EXPECT_EQ(Fed(&lines, "1%\r2%\r3%\r", 0), "p 1%\r");
  EXPECT_EQ(Fed(&lines, "4%\r5%\r", 10), "");
  EXPECT_EQ(lines.NextWakeup(), At(100));
  EXPECT_EQ(Ticked(&lines, 99), "");
  EXPECT_EQ(Ticked(&lines, 100), "p 4%\r");
  EXPECT_EQ(Fed(&lines, "6%\r", 150), "");
  // The end of the line is never held back, and what came before it is shown once more.
  EXPECT_EQ(Fed(&lines, "done\n", 160), "p 6%\rp done\n");
  EXPECT_TRUE(lines.NextWakeup().IsNever());
}

TEST(LineAssembler, ACarriageReturnBeforeANewlineRewritesNothing) {
  LineAssembler lines({.prefix = "p ", .is_terminal = true});
  EXPECT_EQ(Fed(&lines, "a\r"), "");
  EXPECT_EQ(Fed(&lines, "\nb\r\n"), "p a\r\np b\r\n");
  EXPECT_EQ(Fed(&lines, "c\r"), "");
  EXPECT_EQ(Ended(&lines), "p c\r\n");
}

TEST(LineAssembler, ElsewhereACarriageReturnIsAByte) {
  LineAssembler lines({.prefix = "p "});
  EXPECT_EQ(Fed(&lines, "1%\r2%\r"), "");
  EXPECT_EQ(Fed(&lines, "3%\n"), "p 1%\r2%\r3%\n");
}

TEST(LineAssembler, ShowsAnUnfinishedLineWhereNobodyElseWrites) {
  LineAssembler lines({.prefix = "p ", .shows_unfinished = true});
  EXPECT_EQ(Fed(&lines, "..", 0), "");
  EXPECT_EQ(lines.NextWakeup(), At(100));
  EXPECT_EQ(Ticked(&lines, 100), "p ..");
  EXPECT_EQ(Fed(&lines, "..", 200), "");
  EXPECT_EQ(Ticked(&lines, 300), "..");
  EXPECT_EQ(Fed(&lines, "ok\n", 301), "ok\n");
  EXPECT_EQ(Fed(&lines, "x", 302), "");
  EXPECT_EQ(Ticked(&lines, 402), "p x");
  EXPECT_EQ(Ended(&lines), "\n");
}

}  // namespace
}  // namespace muster::agent
