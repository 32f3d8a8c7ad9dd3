#include "rendezvous/server/round_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/entropy.h"
#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

std::string FreshDir(const char* name) {
  return ::testing::TempDir() + "/" + name + "." + std::to_string(getpid());
}

TEST(RoundStore, KeepsWhatWasLastSaidOverARestart) {
  const std::string dir = FreshDir("keeps");
  const std::string strange("a b\n\0\xff", 6);
  {
    auto store = RoundStore::Open(dir);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->HighestRound("job"), RoundId(0));
    for (uint64_t round : {1, 2}) {
      EXPECT_TRUE((*store)->Keep("job", {RoundId(round), base::FreshId<WorldId>()}).ok());
    }
    EXPECT_TRUE((*store)->Keep(strange, {RoundId(7), base::FreshId<WorldId>()}).ok());
    EXPECT_TRUE((*store)->Keep("over", {RoundId(3), base::FreshId<WorldId>()}).ok());
    EXPECT_TRUE((*store)->Forget("over").ok());
    EXPECT_TRUE((*store)->Forget("never kept").ok());
  }
  auto again = RoundStore::Open(dir);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->HighestRound("job"), RoundId(2));
  EXPECT_EQ((*again)->HighestRound(strange), RoundId(7));
  EXPECT_EQ((*again)->HighestRound("over"), RoundId(0));
}

TEST(RoundStore, SaysWhatIsWrongWithItsFile) {
  const std::string dir = FreshDir("malformed");
  ASSERT_EQ(mkdir(dir.c_str(), 0700), 0);
  for (const char* text : {"something else\n", "muster rounds 1\nxyz 1 00\n", "",
                           "muster rounds 1\n6a 5 00000000000000000000000000000000\n"}) {
    std::ofstream(dir + "/rounds") << text;
    auto store = RoundStore::Open(dir);
    EXPECT_EQ(store.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(store.status().message().find(dir + "/rounds"), std::string::npos);
  }
}

TEST(RoundStore, RefusesADirectoryThatCantBeUsed) {
  EXPECT_EQ(RoundStore::Open("/nonexistent/state").status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::string file = FreshDir("file");
  std::ofstream(file) << "x";
  EXPECT_EQ(RoundStore::Open(file).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RoundStore, SaysThatTheDiskRefuses) {
  const std::string dir = FreshDir("refuses");
  auto store = RoundStore::Open(dir);
  ASSERT_TRUE(store.ok()) << store.status();
  // A folder in the way of the file that is renamed: works for root too.
  ASSERT_EQ(mkdir((dir + "/rounds.tmp").c_str(), 0700), 0);
  absl::Status status = (*store)->Keep("job", {RoundId(1), base::FreshId<WorldId>()});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(dir), std::string::npos) << status;
}

}  // namespace
}  // namespace muster::rendezvous
