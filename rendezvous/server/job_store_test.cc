#include "rendezvous/server/job_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/entropy.h"
#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

std::string FreshDir(const char* name) {
  return ::testing::TempDir() + "/" + name + "." + std::to_string(getpid());
}

constexpr char kFirstLine[] = "# A job of a muster rendezvous; it rewrites this file.\n";

std::set<std::string> FilesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.insert(entry.path().filename());
  return names;
}

std::string ContentOf(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
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
    EXPECT_TRUE((*store)->found().empty());
    for (uint64_t round : {1, 2}) EXPECT_TRUE((*store)->Keep("job", OfRound(round)).ok());
    EXPECT_TRUE((*store)->Keep(strange, committed).ok());
    EXPECT_TRUE((*store)->Keep("failed", failed).ok());
    EXPECT_TRUE((*store)->Keep("over", OfRound(3)).ok());
    EXPECT_TRUE((*store)->Forget("over").ok());
    EXPECT_TRUE((*store)->Forget("never kept").ok());
  }
  auto again = JobStore::Open(dir);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->found().size(), 3U);
  EXPECT_EQ((*again)->found().at("job").world.round, RoundId(2));
  EXPECT_EQ((*again)->found().at(strange), committed);
  EXPECT_EQ((*again)->found().at("failed"), failed);
}

TEST(JobStore, KeepsEachJobInAFileOfItsOwn) {
  const std::string dir = FreshDir("apart");
  {
    auto store = JobStore::Open(dir);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const char* job : {"a", "b", "c"}) EXPECT_TRUE((*store)->Keep(job, OfRound(1)).ok());
    EXPECT_TRUE((*store)->Forget("b").ok());
  }
  EXPECT_EQ(FilesIn(dir), (std::set<std::string>{"job.1", "job.3", "lock"}));
  {
    auto store = JobStore::Open(dir);
    ASSERT_TRUE(store.ok()) << store.status();
    const std::string of_a = ContentOf(dir + "/job.1");
    EXPECT_TRUE((*store)->Keep("d", OfRound(1)).ok());
    EXPECT_TRUE((*store)->Keep("c", OfRound(2)).ok());
    EXPECT_EQ(ContentOf(dir + "/job.1"), of_a);
  }
  EXPECT_EQ(FilesIn(dir), (std::set<std::string>{"job.1", "job.3", "job.4", "lock"}));
  auto again = JobStore::Open(dir);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->found().size(), 3U);
  EXPECT_EQ((*again)->found().at("c").world.round, RoundId(2));
}

// Killed while it wrote: the file that was there counts.
TEST(JobStore, AHalfWrittenFileIsNoJob) {
  const std::string dir = FreshDir("half");
  { ASSERT_TRUE((*JobStore::Open(dir))->Keep("job", OfRound(1)).ok()); }
  std::ofstream(dir + "/fresh") << kFirstLine << "run_id: \"j";
  {
    auto again = JobStore::Open(dir);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ((*again)->found().at("job").world.round, RoundId(1));
  }
  EXPECT_EQ(FilesIn(dir), (std::set<std::string>{"job.1", "lock"})) << "and nothing stays";
}

TEST(JobStore, SaysWhatIsWrongWithAFile) {
  const std::string dir = FreshDir("malformed");
  ASSERT_EQ(mkdir(dir.c_str(), 0700), 0);
  const std::string first = kFirstLine;
  for (const std::string& text :
       {std::string("something else\n"), std::string(), first, first + "run_id: \"j",
        first + "surprise: 1", first + "world { round: 1 }",
        first + "run_id: \"j\" world { id: \"short\" }",
        first + "run_id: \"j\" commit { step: -1 }",
        first + "run_id: \"j\" verdict { exit_code: 300 }",
        first + "run_id: \"j\" commit_round: 18446744073709551615"}) {
    std::ofstream(dir + "/job.7") << text;
    auto store = JobStore::Open(dir);
    EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition) << text;
    EXPECT_NE(store.status().message().find(dir + "/job.7 isn't a file of muster's: "),
              std::string::npos)
        << store.status();
  }
}

TEST(JobStore, TwoFilesOfOneJobAreNotGuessedAt) {
  const std::string dir = FreshDir("twice");
  { ASSERT_TRUE((*JobStore::Open(dir))->Keep("job", OfRound(1)).ok()); }
  std::ofstream(dir + "/job.2") << ContentOf(dir + "/job.1");
  EXPECT_NE(JobStore::Open(dir).status().message().find(
                dir + "/job.2 isn't a file of muster's: another file is of the same job"),
            std::string::npos);
}

TEST(JobStore, AFileUnderAnotherNameIsNoJob) {
  const std::string dir = FreshDir("stray");
  { ASSERT_TRUE((*JobStore::Open(dir))->Keep("job", OfRound(1)).ok()); }
  const std::string content = ContentOf(dir + "/job.1");
  for (const char* name : {"01", "+1", "-1", " 1", "1 ", "1~", "1.bak", "", "007", "+7", "0x7",
                           "99999999999999999999"}) {
    std::ofstream(dir + "/job." + name) << content;
  }
  auto store = JobStore::Open(dir);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->found().size(), 1U);
  EXPECT_TRUE((*store)->Keep("next", OfRound(1)).ok());
  EXPECT_TRUE(std::filesystem::exists(dir + "/job.2"));
  EXPECT_TRUE((*store)->Forget("job").ok());
  EXPECT_EQ(ContentOf(dir + "/job.01"), content) << "and it is left alone";
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
  ASSERT_EQ(mkdir((dir + "/job.1").c_str(), 0700), 0);
  auto store = JobStore::Open(dir);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  if (geteuid() == 0) return;
  ASSERT_EQ(rmdir((dir + "/job.1").c_str()), 0);
  std::ofstream(dir + "/job.1") << "something";
  ASSERT_EQ(chmod((dir + "/job.1").c_str(), 0), 0);
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
  ASSERT_EQ(mkdir((dir + "/fresh").c_str(), 0700), 0);
  absl::Status status = (*store)->Keep("job", OfRound(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(dir), std::string::npos) << status;
}

}  // namespace
}  // namespace muster::rendezvous
