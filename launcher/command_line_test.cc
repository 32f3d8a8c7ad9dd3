#include "launcher/command_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

constexpr FlagSpec kFlags[] = {
    {"nproc-per-node", "N", "Nodes", "Workers on this node"},
    {"standalone", "", "Nodes", "One node"},
    {"redirects", "0..3", "Output", "To files", 'r'},
    {"module", "", "Program", "A module", 'm'},
};

constexpr FlagSpec kMixedFlags[] = {
    {"nproc-per-node", "N", "Nodes", "Workers", 0, Origin::kTorchrun},
    {"nnodes", "N", "Nodes", "Nodes", 0, Origin::kTorchrun},
    {"max-restarts", "N", "Faults", "Restarts", 0, Origin::kTorchrun},
    {"max-restarts-per-hour", "N", "Faults", "In an hour"},
    {"preload", "NAME", "Program", "Modules"},
};

CommandLine Parse(const Words& words) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(kFlags, words);
  EXPECT_TRUE(line.ok()) << line.status().message();
  return line.value_or(CommandLine{});
}

std::string ErrorOf(const Words& words) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(kFlags, words);
  EXPECT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(line.status().message());
}

TEST(CommandLine, TakesEverySpelling) {
  for (const Words& words : {Words{"--nproc-per-node=2", "p"}, Words{"--nproc_per_node", "2", "p"},
                             Words{"--nproc-per_node=1", "--nproc_per_node=2", "p"}}) {
    CommandLine line = Parse(words);
    EXPECT_EQ(line.values["nproc-per-node"], "2");
    EXPECT_THAT(line.rest, ElementsAre("p"));
  }
  for (const Words& words :
       {Words{"-r", "3"}, Words{"-r3"}, Words{"-r=3"}, Words{"--redirects=3"}}) {
    EXPECT_EQ(Parse(words).values["redirects"], "3");
  }
}

TEST(CommandLine, NeverLooksAtWhatFollowsTheProgram) {
  Words rest = {"/bin/echo", "--r=16", "--log", "5", "--mo", "0.9",         "--nnodes",
                "3",         "-m",     "-h",    "",  "--",   "--standalone"};
  Words words = {"--standalone"};
  words.insert(words.end(), rest.begin(), rest.end());
  CommandLine line = Parse(words);
  EXPECT_EQ(line.rest, rest);
  EXPECT_EQ(line.values.size(), 1u);
}

TEST(CommandLine, DropsOnlyTheFirstDoubleDash) {
  CommandLine line = Parse({"--standalone", "--", "--odd-name", "--", "x"});
  EXPECT_THAT(line.rest, ElementsAre("--odd-name", "--", "x"));
  EXPECT_THAT(Parse({"-m", "pkg", "--", "x"}).rest, ElementsAre("pkg", "--", "x"));
}

TEST(CommandLine, WithoutAProgramFlagsMayFollowItsWords) {
  const struct {
    Words words;
    Words rest;
    std::string redirects;
  } kCases[] = {
      {{"-r3", "node"}, {"node"}, "3"},
      {{"node", "-r3"}, {"node"}, "3"},
      {{"node", "--redirects", "3", "other"}, {"node", "other"}, "3"},
      {{"-r1", "node", "-r3"}, {"node"}, "3"},
      {{"node", "-r3", "--", "-r1"}, {"node", "-r1"}, "3"},
      {{"-", "", "-r3"}, {"-", ""}, "3"},
  };
  for (const auto& c : kCases) {
    absl::StatusOr<CommandLine> line = ParseWordsAndFlags(kFlags, c.words);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->rest, c.rest);
    EXPECT_EQ(line->values["redirects"], c.redirects);
  }
  const Words mistyped = {"node", "--standalon"};
  EXPECT_THAT(ParseWordsAndFlags(kFlags, mistyped).status().message(),
              HasSubstr("did you mean --standalone?"));
}

TEST(CommandLine, TakesAValueThatLooksLikeAFlag) {
  EXPECT_EQ(Parse({"--nproc-per-node", "-1"}).values["nproc-per-node"], "-1");
  EXPECT_EQ(Parse({"--nproc-per-node="}).values["nproc-per-node"], "");
  EXPECT_EQ(Parse({"--nproc-per-node=a=b"}).values["nproc-per-node"], "a=b");
}

TEST(CommandLine, NamesTheNearestFlag) {
  EXPECT_THAT(ErrorOf({"--nproc-per-nod=2"}), HasSubstr("--nproc-per-nod; did you mean "
                                                        "--nproc-per-node?"));
  EXPECT_THAT(ErrorOf({"--standalonee"}), HasSubstr("did you mean --standalone?"));
}

TEST(CommandLine, RefusesShortenedFlags) {
  std::string error = ErrorOf({"--nproc=2", "p"});
  EXPECT_THAT(error, HasSubstr("--nproc; did you mean --nproc-per-node?"));
  EXPECT_THAT(error, HasSubstr("can't be shortened"));
}

TEST(CommandLine, TorchrunsNamesMayBeShortened) {
  const Words words = {"--nproc=2", "--nn", "3", "--max_r=4", "p", "--nproc=9"};
  absl::StatusOr<CommandLine> line = ParseCommandLine(kMixedFlags, words);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->values["nproc-per-node"], "2");
  EXPECT_EQ(line->values["nnodes"], "3");
  // Ours, which begins alike, doesn't make it ambiguous.
  EXPECT_EQ(line->values["max-restarts"], "4");
  EXPECT_FALSE(line->values.contains("max-restarts-per-hour"));
  EXPECT_THAT(line->rest, ElementsAre("p", "--nproc=9"));
}

TEST(CommandLine, AShortNameMustMeanOneFlagAndNoneOfOurs) {
  const Words ambiguous = {"--n=2", "p"};
  EXPECT_EQ(ParseCommandLine(kMixedFlags, ambiguous).status().message(),
            "option --n is too short, it may be --nproc-per-node, --nnodes; write one of them");
  const Words ours = {"--preloa=torch", "p"};
  EXPECT_THAT(ParseCommandLine(kMixedFlags, ours).status().message(),
              HasSubstr("--preloa; did you mean --preload?"));
}

TEST(CommandLine, LettersMayStandTogether) {
  CommandLine line = Parse({"-mr3", "p"});
  EXPECT_EQ(line.values["module"], "1");
  EXPECT_EQ(line.values["redirects"], "3");
  EXPECT_EQ(Parse({"-mr", "2", "p"}).values["redirects"], "2");
  EXPECT_THAT(ErrorOf({"-mx", "p"}), HasSubstr("unknown option -mx"));
  EXPECT_THAT(ErrorOf({"-m=1", "p"}), HasSubstr("unknown option -m=1"));
}

TEST(CommandLine, RefusesMissingAndNeedlessValues) {
  EXPECT_THAT(ErrorOf({"--nproc-per-node"}), HasSubstr("--nproc-per-node needs a value: N"));
  EXPECT_THAT(ErrorOf({"--standalone=yes"}), HasSubstr("--standalone takes no value"));
  EXPECT_THAT(ErrorOf({"-mr"}), HasSubstr("-r needs a value: 0..3"));
  EXPECT_THAT(ErrorOf({"-x"}), HasSubstr("-x"));
}

TEST(CommandLine, EndsWithoutAProgram) {
  EXPECT_THAT(Parse({}).rest, IsEmpty());
  EXPECT_THAT(Parse({"--standalone", "--"}).rest, IsEmpty());
  EXPECT_THAT(Parse({"-", "x"}).rest, ElementsAre("-", "x"));
}

TEST(CommandLine, HelpListsEveryFlagUnderItsGroup) {
  std::string page = HelpPage("Usage: muster run PROGRAM\n", kFlags);
  EXPECT_EQ(page.find("Usage: muster run PROGRAM\n"), 0u);
  EXPECT_EQ(page.find("Usage:", 1), std::string::npos);
  EXPECT_LT(page.find("Nodes:"), page.find("--nproc-per-node"));
  EXPECT_LT(page.find("Output:"), page.find("-r,--redirects"));
  EXPECT_THAT(page, HasSubstr("Workers on this node"));
  // One blank line before each group, and none at the end.
  EXPECT_THAT(page, HasSubstr("PROGRAM\n\nNodes:\n"));
  EXPECT_THAT(page, HasSubstr("\n\nOutput:\n"));
  EXPECT_EQ(page.find("\n\n\n"), std::string::npos) << page;
  EXPECT_FALSE(page.ends_with("\n\n"));
  EXPECT_EQ(page.find('*'), std::string::npos);
}

TEST(CommandLine, HelpMarksOursBesideTorchruns) {
  std::string page = HelpPage("", kMixedFlags);
  EXPECT_THAT(page, HasSubstr("* Modules"));
  EXPECT_THAT(page, HasSubstr("* In an hour"));
  EXPECT_EQ(page.find("* Workers"), std::string::npos);
}

constexpr FlagSpec kMpirunFlags[] = {
    {"nproc-per-node", "N", "Nodes", "Workers", 0, Origin::kTorchrun},
    {"help", "", "Other", "Help", 'h', Origin::kTorchrun},
    {"hosts", "HOST", "Hosts", "Hosts", 'H', Origin::kMpirun, "host"},
    {"workers", "N", "Hosts", "In all", 'n', Origin::kMpirun, "np"},
    {"env", "NAME", "Hosts", "Variable", 'x', Origin::kMpirun},
};

TEST(CommandLine, TakesMpirunsWordsWithOneDashAndTwo) {
  for (const Words& words : {Words{"--hosts=a"}, Words{"--host", "a"}, Words{"-host", "a"},
                             Words{"-hosts=a"}, Words{"-H", "a"}, Words{"-Ha"}}) {
    auto line = ParseCommandLine(kMpirunFlags, words);
    ASSERT_TRUE(line.ok()) << words[0] << line.status().message();
    EXPECT_EQ(line->values["hosts"], "a") << words[0];
    EXPECT_FALSE(line->values.contains("help"));
  }
  EXPECT_EQ(ParseCommandLine(kMpirunFlags, Words{"-np", "4"})->values["workers"], "4");
  EXPECT_EQ(ParseCommandLine(kMpirunFlags, Words{"-n4"})->values["workers"], "4");
}

TEST(CommandLine, SaysWhatToWriteInsteadOfAnotherLaunchersFlag) {
  constexpr ForeignFlag kForeign[] = {{"ppn,np,help", "write --hosts=a:N"}};
  auto error = [&kForeign](const Words& words) {
    return std::string(ParseCommandLine(kMpirunFlags, words, kForeign).status().message());
  };
  EXPECT_EQ(error({"-ppn", "4"}), "option -ppn is mpirun's; write --hosts=a:N");
  EXPECT_EQ(error({"--ppn=4"}), "option --ppn is mpirun's; write --hosts=a:N");
  // With one dash theirs come first, with two ours, shortened ones too.
  EXPECT_EQ(error({"-help"}), "option -help is mpirun's; write --hosts=a:N");
  EXPECT_EQ(error({"--help"}), "");
  EXPECT_EQ(error({"--np", "4"}), "");
  EXPECT_EQ(error({"p", "-ppn", "4"}), "");
}

TEST(CommandLine, AShortenedNameOfTorchrunsComesBeforeMpiruns) {
  auto line = ParseCommandLine(kMpirunFlags, Words{"--np", "4"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->values["nproc-per-node"], "4");
}

TEST(CommandLine, KeepsAllInTheirOrder) {
  auto line = ParseCommandLine(kMpirunFlags, Words{"-x", "A=1", "-Ha", "-xB", "p", "-x", "C"});
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->in_order,
              ElementsAre(std::pair("env", "A=1"), std::pair("hosts", "a"), std::pair("env", "B")));
  EXPECT_THAT(line->rest, ElementsAre("p", "-x", "C"));
}

}  // namespace
}  // namespace muster::launcher
