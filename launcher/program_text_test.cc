#include "launcher/program_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

std::string Text(std::vector<std::string> program, bool is_module = false) {
  RunOptions options;
  options.program = std::move(program);
  options.is_module = is_module;
  return ProgramText(options);
}

TEST(ProgramText, IsWhatAShellWouldTake) {
  EXPECT_EQ(Text({"train.py", "--lr=0.1", "--name", "a b", "", "it's"}),
            "train.py --lr=0.1 --name 'a b' '' 'it'\\''s'");
  EXPECT_EQ(Text({"pkg.train", "-x"}, true), "-m pkg.train -x");
}

TEST(ProgramText, StaysOneLineWhateverTheArguments) {
  EXPECT_EQ(Text({"p", "a\nb'\\\x7f"}), "p $'a\\x0ab\\'\\\\\\x7f'");
}

TEST(ProgramText, WordsThatOnlyDifferInTheirSeamsAreToldApart) {
  EXPECT_NE(Text({"p", "a b"}), Text({"p", "a", "b"}));
  EXPECT_NE(Text({"p", "a\\x0a"}), Text({"p", "a\n"}));
}

TEST(ProgramText, ALongOneIsCutAndStillComparedToItsEnd) {
  const std::string same(10'000, 'x');
  const std::string one = Text({"p", same, "1"});
  const std::string two = Text({"p", same, "2"});
  EXPECT_LE(one.size(), 4096u);
  EXPECT_NE(one, two);
  EXPECT_EQ(one.substr(0, 4000), two.substr(0, 4000));
  EXPECT_THAT(one, testing::HasSubstr("... (10004 bytes, hash "));
}

}  // namespace
}  // namespace muster::launcher
