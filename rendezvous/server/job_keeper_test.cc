#include "rendezvous/server/job_keeper.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <iterator>
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

std::unique_ptr<JobKeeper> Open(const std::string& dir) {
  auto store = JobStore::Open(dir);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? std::make_unique<JobKeeper>(*std::move(store)) : nullptr;
}

JobRecord OfRound(uint64_t round) {
  JobRecord record;
  record.world = {RoundId(round), base::FreshId<WorldId>()};
  return record;
}

RoundId RoundOf(const JobKeeper& keeper, const std::string& run_id) {
  return keeper.RecordOf(run_id).world.round;
}

TEST(JobKeeper, KnowsARecordAtOnceAndKeepsItOverARestart) {
  const std::string dir = FreshDir("keeper");
  JobRecord ended = OfRound(9);
  ended.verdict.emplace().succeeded = true;
  {
    auto keeper = Open(dir);
    EXPECT_EQ(keeper->RecordOf("job"), JobRecord());
    for (uint64_t round = 1; round <= 200; ++round) {
      keeper->Keep("job", OfRound(round));
      ASSERT_EQ(RoundOf(*keeper, "job"), RoundId(round));
    }
    keeper->Keep("another", OfRound(3));
    keeper->Keep("ended", ended);
    EXPECT_EQ(keeper->RunIds(), (std::vector<std::string>{"another", "ended", "job"}));
    keeper->Keep("over", OfRound(4));
    keeper->Forget("over");
    EXPECT_EQ(RoundOf(*keeper, "over"), RoundId(0));
  }
  auto again = Open(dir);
  EXPECT_EQ(RoundOf(*again, "job"), RoundId(200));
  EXPECT_EQ(RoundOf(*again, "another"), RoundId(3));
  EXPECT_EQ(RoundOf(*again, "over"), RoundId(0));
  EXPECT_EQ(again->RunIds(), (std::vector<std::string>{"another", "ended", "job"}));
  EXPECT_EQ(again->RecordOf("ended"), ended);
  again->Forget("job");
  again.reset();
  EXPECT_EQ(RoundOf(*Open(dir), "job"), RoundId(0));
}

TEST(JobKeeper, CallsThoseWhoWaitWhenTheRecordIsOnDisk) {
  const std::string dir = FreshDir("keeper_calls");
  auto keeper = Open(dir);
  std::promise<std::string> seen;
  keeper->Keep("job", OfRound(7), [&] {
    std::ifstream file(dir + "/job.1");
    seen.set_value({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  });
  EXPECT_NE(seen.get_future().get().find("round: 7"), std::string::npos);
  // One write may stand for many records; everyone is called all the same.
  std::atomic<int> called = 0;
  for (uint64_t round = 8; round < 108; ++round) {
    keeper->Keep("job", OfRound(round), [&] { ++called; });
  }
  keeper.reset();
  EXPECT_EQ(called, 100);
}

TEST(JobKeeper, GoesOnWhereTheDiskRefuses) {
  const std::string dir = FreshDir("keeper_refuses");
  {
    auto keeper = Open(dir);
    // A folder in the way of the file that is renamed: works for root too.
    ASSERT_EQ(mkdir((dir + "/fresh").c_str(), 0700), 0);
    std::promise<void> told;
    keeper->Keep("job", OfRound(1), [&] { told.set_value(); });
    told.get_future().get();
    EXPECT_EQ(RoundOf(*keeper, "job"), RoundId(1));
  }
  ASSERT_EQ(rmdir((dir + "/fresh").c_str()), 0);
  EXPECT_EQ(RoundOf(*Open(dir), "job"), RoundId(0)) << "it was refused";
}

}  // namespace
}  // namespace muster::rendezvous
