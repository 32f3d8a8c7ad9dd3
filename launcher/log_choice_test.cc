#include "launcher/log_choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Of a job on two nodes with two workers each: the second node's files of both attempts.
KnownLogs SecondNode() {
  KnownLogs known = {.folder = "logs"};
  agent::RunRecord record;
  for (int attempt : {0, 1}) {
    record.attempts.push_back({attempt, 2, 2, 4, 2, "w"});
    for (int i : {0, 1}) known.logs.push_back({.attempt = attempt, .rank = 2 + i, .local_rank = i});
  }
  known.folders = {{"logs/a", record}};
  return known;
}

// Of torchrun.
KnownLogs WithoutRecord() {
  KnownLogs known = {.folder = "logs"};
  for (int i : {0, 1, 3}) known.logs.push_back({.attempt = 0, .local_rank = i});
  known.folders = {{"logs/a", std::nullopt}};
  return known;
}

TEST(LogChoice, TakesByRankOfTheJobByLocalRankAndByAttempt) {
  const WorkerLog log = {.attempt = 1, .rank = 3, .local_rank = 1};
  EXPECT_TRUE(LogChoice{}.Takes(log));
  EXPECT_TRUE(LogChoice{.rank = 3}.Takes(log));
  EXPECT_FALSE(LogChoice{.rank = 1}.Takes(log));
  EXPECT_TRUE((LogChoice{.local_rank = 1, .attempt = 1}.Takes(log)));
  EXPECT_FALSE(LogChoice{.local_rank = 3}.Takes(log));
  EXPECT_FALSE(LogChoice{.attempt = 0}.Takes(log));
  // Whose rank nobody noted has none.
  EXPECT_FALSE(LogChoice{.rank = 1}.Takes({.attempt = 1, .local_rank = 1}));
}

TEST(LogChoice, SaysWhichThereAre) {
  EXPECT_EQ(WhyNoLogs({.rank = 9}, SecondNode()),
            "--rank=9: the job has no rank 9; its ranks are 0 to 3");
  EXPECT_EQ(WhyNoLogs({.rank = 1}, SecondNode()),
            "--rank=1: no log files of rank 1 in \"logs\"; there are those of ranks 2-3 (each node "
            "has its own, and only streams of --redirects and --tee are written to files)");
  EXPECT_EQ(WhyNoLogs({.local_rank = 2}, SecondNode()),
            "--local-rank=2: no node of \"logs\" has local rank 2; there are local ranks 0 to 1");
  EXPECT_EQ(WhyNoLogs({.attempt = 7}, SecondNode()),
            "--attempt=7: no log files of attempt 7 in \"logs\"; there are those of attempts 0-1");
  EXPECT_EQ(WhyNoLogs({.rank = 1}, WithoutRecord()),
            "--rank=1: \"logs\" doesn't say which ranks its workers had (another launcher made it, "
            "or an older muster); use --local-rank, there are local ranks 0-1, 3");
  EXPECT_THAT(WhyNoLogs({.local_rank = 2}, WithoutRecord()),
              StartsWith("--local-rank=2: no log files of local rank 2 in \"logs\"; there are "
                         "those of local ranks 0-1, 3 ("));
  KnownLogs nothing = SecondNode();
  nothing.logs.clear();
  EXPECT_EQ(WhyNoLogs({}, nothing),
            "\"logs\" holds no log files; only streams of --redirects and --tee are written to "
            "files");
}

TEST(LogChoice, WaitsForWhatMayCome) {
  EXPECT_TRUE(IsHopeless({.rank = 4}, SecondNode()));
  EXPECT_TRUE(IsHopeless({.local_rank = 2}, SecondNode()));
  // Another node's folder, a later attempt, the first round.
  EXPECT_FALSE(IsHopeless({.rank = 1}, SecondNode()));
  EXPECT_FALSE(IsHopeless({.attempt = 2}, SecondNode()));
  EXPECT_FALSE(IsHopeless({.rank = 9, .attempt = 2}, SecondNode()));
  KnownLogs begun = {.folder = "logs", .folders = {{"logs/a", agent::RunRecord{}}}};
  EXPECT_FALSE(IsHopeless({.rank = 9}, begun));
  EXPECT_TRUE(IsHopeless({.rank = 0}, WithoutRecord()));
  EXPECT_FALSE(IsHopeless({.local_rank = 5}, WithoutRecord()));
}

TEST(LogChoice, NamesManyNumbersInBrief) {
  EXPECT_EQ(RangesOf({}), "");
  EXPECT_EQ(RangesOf({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  std::set<int> odd;
  for (int i = 1; i < 100; i += 2) odd.insert(i);
  EXPECT_THAT(RangesOf(odd), HasSubstr("39, ..."));
}

}  // namespace
}  // namespace muster::launcher
