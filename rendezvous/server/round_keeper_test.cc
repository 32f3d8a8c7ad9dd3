#include "rendezvous/server/round_keeper.h"

#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "base/entropy.h"
#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

std::string FreshDir(const char* name) {
  return ::testing::TempDir() + "/" + name + "." + std::to_string(getpid());
}

std::unique_ptr<RoundKeeper> Open(const std::string& dir) {
  auto store = RoundStore::Open(dir);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? std::make_unique<RoundKeeper>(*std::move(store)) : nullptr;
}

World WorldOf(uint64_t round) { return {RoundId(round), base::FreshId<WorldId>()}; }

TEST(RoundKeeper, KnowsARoundAtOnceAndKeepsItOverARestart) {
  const std::string dir = FreshDir("keeper");
  {
    auto keeper = Open(dir);
    EXPECT_EQ(keeper->HighestRound("job"), RoundId(0));
    for (uint64_t round = 1; round <= 200; ++round) {
      keeper->Keep("job", WorldOf(round));
      ASSERT_EQ(keeper->HighestRound("job"), RoundId(round));
    }
    keeper->Keep("another", WorldOf(3));
    keeper->Keep("over", WorldOf(4));
    keeper->Forget("over");
    EXPECT_EQ(keeper->HighestRound("over"), RoundId(0));
  }
  auto again = Open(dir);
  EXPECT_EQ(again->HighestRound("job"), RoundId(200));
  EXPECT_EQ(again->HighestRound("another"), RoundId(3));
  EXPECT_EQ(again->HighestRound("over"), RoundId(0));
  again->Forget("job");
  again.reset();
  EXPECT_EQ(Open(dir)->HighestRound("job"), RoundId(0));
}

TEST(RoundKeeper, GoesOnWhereTheDiskRefuses) {
  const std::string dir = FreshDir("keeper_refuses");
  {
    auto keeper = Open(dir);
    // A folder in the way of the file that is renamed: works for root too.
    ASSERT_EQ(mkdir((dir + "/rounds.tmp").c_str(), 0700), 0);
    keeper->Keep("job", WorldOf(1));
    EXPECT_EQ(keeper->HighestRound("job"), RoundId(1));
  }
  ASSERT_EQ(rmdir((dir + "/rounds.tmp").c_str()), 0);
  EXPECT_EQ(Open(dir)->HighestRound("job"), RoundId(0)) << "it was refused";
}

}  // namespace
}  // namespace muster::rendezvous
