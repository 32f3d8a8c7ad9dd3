#include "rendezvous/server/job_store.h"

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

JobRecord OfRound(uint64_t round) { return {.world = {RoundId(round), base::FreshId<WorldId>()}}; }

TEST(JobStore, KeepsWhatWasLastSaidOverARestart) {
  const std::string dir = FreshDir("keeps");
  const std::string strange("a b\n\"\0\xff", 7);
  JobRecord committed = OfRound(7);
  committed.commit = Commit{400, std::string("/shared/with \"quotes\"\n\xff", 23)};
  committed.commit_round = RoundId(5);
  JobRecord failed = OfRound(9);
  failed.verdict.emplace();
  failed.verdict->reason = "rank 1 was killed";
  failed.verdict->exit_code = 137;
  failed.verdict->failures.emplace_back().node_name = "b";
  failed.verdict->restarts_charged = 3;
  {
    auto store = JobStore::Open(dir);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->jobs().empty());
    for (uint64_t round : {1, 2}) EXPECT_TRUE((*store)->Keep("job", OfRound(round)).ok());
    EXPECT_TRUE((*store)->Keep(strange, committed).ok());
    EXPECT_TRUE((*store)->Keep("failed", failed).ok());
    EXPECT_TRUE((*store)->Keep("over", OfRound(3)).ok());
    EXPECT_TRUE((*store)->Forget("over").ok());
    EXPECT_TRUE((*store)->Forget("never kept").ok());
  }
  auto again = JobStore::Open(dir);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->jobs().size(), 3U);
  EXPECT_EQ((*again)->jobs().at("job").world.round, RoundId(2));
  EXPECT_EQ((*again)->jobs().at(strange), committed);
  EXPECT_EQ((*again)->jobs().at("failed"), failed);
}

TEST(JobStore, SaysWhatIsWrongWithItsFile) {
  const std::string dir = FreshDir("malformed");
  ASSERT_EQ(mkdir(dir.c_str(), 0700), 0);
  const std::string first = "# Jobs of a muster rendezvous; it rewrites this file.\n";
  for (const std::string& text :
       {std::string("something else\n"), std::string(), first + "jobs { run_id: \"j\" ",
        first + "jobs { surprise: 1 }", first + "jobs { world { round: 1 } }",
        first + "jobs { run_id: \"j\" world { id: \"short\" } }",
        first + "jobs { run_id: \"j\" commit { step: -1 } }",
        first + "jobs { run_id: \"j\" verdict { exit_code: 300 } }",
        first + "jobs { run_id: \"j\" commit_round: 18446744073709551615 }"}) {
    std::ofstream(dir + "/jobs") << text;
    auto store = JobStore::Open(dir);
    EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition) << text;
    EXPECT_NE(store.status().message().find(dir + "/jobs isn't a file of muster's: "),
              std::string::npos)
        << store.status();
  }
}

TEST(JobStore, RefusesADirectoryThatCantBeUsed) {
  EXPECT_EQ(JobStore::Open("/nonexistent/state").status().code(),
            absl::StatusCode::kFailedPrecondition);
  const std::string file = FreshDir("file");
  std::ofstream(file) << "x";
  EXPECT_EQ(JobStore::Open(file).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(JobStore, AFileThatCantBeReadIsLeftAsItIs) {
  const std::string dir = FreshDir("unreadable");
  ASSERT_EQ(mkdir(dir.c_str(), 0700), 0);
  // For root nothing is unreadable but what is no file.
  ASSERT_EQ(mkdir((dir + "/jobs").c_str(), 0700), 0);
  auto store = JobStore::Open(dir);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  if (geteuid() == 0) return;
  ASSERT_EQ(rmdir((dir + "/jobs").c_str()), 0);
  std::ofstream(dir + "/jobs") << "something";
  ASSERT_EQ(chmod((dir + "/jobs").c_str(), 0), 0);
  store = JobStore::Open(dir);
  EXPECT_NE(store.status().message().find("nothing was changed"), std::string::npos);
}

TEST(JobStore, IsOneProcessAlone) {
  const std::string dir = FreshDir("locked");
  auto first = JobStore::Open(dir);
  ASSERT_TRUE(first.ok()) << first.status();
  auto second = JobStore::Open(dir);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.status().message(), "the state directory " + dir +
                                           " is in use by another rendezvous (process " +
                                           std::to_string(getpid()) + "); give each one its own");
  first->reset();
  EXPECT_TRUE(JobStore::Open(dir).ok());
}

TEST(JobStore, SaysThatTheDiskRefuses) {
  const std::string dir = FreshDir("refuses");
  auto store = JobStore::Open(dir);
  ASSERT_TRUE(store.ok()) << store.status();
  // A folder in the way of the file that is renamed: works for root too.
  ASSERT_EQ(mkdir((dir + "/jobs.tmp").c_str(), 0700), 0);
  absl::Status status = (*store)->Keep("job", OfRound(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(dir), std::string::npos) << status;
}

}  // namespace
}  // namespace muster::rendezvous
