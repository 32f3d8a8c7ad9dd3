#include "rendezvous/core/commit_table.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using Answer = CommitTable::Answer;

ShardReport Shard(int64_t step, int rank, int count) {
  ShardReport report;
  report.rank = Rank(rank);
  report.shard_count = count;
  report.commit = {step, "/c/step-" + std::to_string(step)};
  return report;
}

constexpr int kWorld = 4;

TEST(CommitTable, TheLastShardIsGrantedAndRepetitionsAreSafe) {
  CommitTable table;
  EXPECT_EQ(table.Report(Shard(10, 0, 2), kWorld).answer, Answer::kWait);
  EXPECT_EQ(table.Report(Shard(10, 0, 2), kWorld).answer, Answer::kWait) << "one rank counts once";
  EXPECT_FALSE(table.OpenGrant());
  EXPECT_EQ(table.Report(Shard(10, 3, 2), kWorld).answer, Answer::kGrant);
  EXPECT_EQ(table.Report(Shard(10, 0, 2), kWorld).answer, Answer::kGrant);
  EXPECT_EQ(table.OpenGrant()->step, 10);
}

TEST(CommitTable, APublishedStepCountsOnceAndOnlyForward) {
  CommitTable table;
  table.Report(Shard(10, 0, 1), kWorld);
  EXPECT_TRUE(table.Publish({10, "/c/step-10"}));
  EXPECT_FALSE(table.Publish({10, "/c/step-10"}));
  EXPECT_FALSE(table.Publish({9, "/c/step-9"}));
  EXPECT_FALSE(table.OpenGrant());
  EXPECT_EQ(table.Report(Shard(10, 0, 1), kWorld).answer, Answer::kCommitted);
  const CommitTable::Outcome older = table.Report(Shard(9, 0, 1), kWorld);
  EXPECT_EQ(older.answer, Answer::kRefuse);
  EXPECT_EQ(older.reason, "step 9 is not after step 10, which this round has committed");
}

TEST(CommitTable, ShardsThatDisagreeAreRefused) {
  CommitTable table;
  table.Report(Shard(10, 0, 2), kWorld);
  ShardReport other = Shard(10, 1, 2);
  other.commit.directory = "/elsewhere";
  EXPECT_EQ(table.Report(other, kWorld).answer, Answer::kRefuse);
  EXPECT_EQ(table.Report(Shard(10, 1, 3), kWorld).answer, Answer::kRefuse);
  EXPECT_EQ(table.Report(Shard(10, 1, 2), kWorld).answer, Answer::kGrant);
}

TEST(CommitTable, RanksAndShardsThatDoNotFitTheWorldAreRefused) {
  CommitTable table;
  EXPECT_EQ(table.Report(Shard(10, -1, 1), kWorld).answer, Answer::kRefuse);
  EXPECT_EQ(table.Report(Shard(10, 4, 1), kWorld).answer, Answer::kRefuse);
  EXPECT_EQ(table.Report(Shard(10, 0, 0), kWorld).answer, Answer::kRefuse);
  EXPECT_EQ(table.Report(Shard(10, 0, 5), kWorld).answer, Answer::kRefuse);
}

TEST(CommitTable, TheOldestOfTooManyIsGivenUp) {
  CommitTable table;
  for (size_t i = 0; i <= CommitTable::kMaxOpen; ++i) {
    const auto step = static_cast<int64_t>(100 + i);
    EXPECT_EQ(table.Report(Shard(step, 0, 2), kWorld).answer, Answer::kWait) << step;
  }
  EXPECT_EQ(table.Report(Shard(1, 0, 2), kWorld).answer, Answer::kRefuse);
  EXPECT_EQ(table.Report(Shard(108, 1, 2), kWorld).answer, Answer::kGrant);
}

}  // namespace
}  // namespace muster::rendezvous
