#include "launcher/log_tree.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "agent/run_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;
using agent::RunRecordWriter;
using testing::ElementsAre;
using testing::HasSubstr;
using Attempt = agent::RunRecord::Attempt;
using End = agent::RunRecord::End;

class LogTreeTest : public testing::Test {
 protected:
  LogTreeTest() : folder_(testing::TempDir() + "/log_tree_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~LogTreeTest() override { fs::remove_all(folder_); }

  std::string Make(const std::string& name) const {
    const std::string path = folder_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << "x\n";
    return path;
  }

  std::string folder_;
};

TEST_F(LogTreeTest, ListsByAttemptThenByRankAsNumbers) {
  std::vector<std::string> paths;
  for (const char* name : {"attempt_2/0/stdout.log", "attempt_2/2/stderr.log",
                           "attempt_2/10/stdout.log", "attempt_10/0/stderr.log"}) {
    paths.push_back(Make(name));
  }
  for (const char* other :
       {"attempt_2/0/error.json", "attempt_2/0/stdout.log.1", "attempt_2/filtered_stdout.log",
        "attempt_x/0/stdout.log", "notes/0/stdout.log", "attempt_2/zero/stdout.log"}) {
    Make(other);
  }
  auto log = [&paths](int i, int attempt, int local_rank, bool is_stderr) {
    return WorkerLog{.attempt = attempt,
                     .local_rank = local_rank,
                     .is_stderr = is_stderr,
                     .path = paths[static_cast<size_t>(i)]};
  };
  EXPECT_THAT(ListWorkerLogs({{folder_}}), ElementsAre(log(0, 2, 0, false), log(1, 2, 2, true),
                                                       log(2, 2, 10, false), log(3, 10, 0, true)));
}

TEST_F(LogTreeTest, ARecordSaysWhichRanksTheyWere) {
  for (const char* name : {"a/attempt_0/1/stdout.log", "a/attempt_1/1/stdout.log",
                           "a/attempt_2/0/stdout.log", "b/attempt_0/1/stderr.log"}) {
    Make(name);
  }
  RunRecordWriter a(folder_ + "/a", "n1"), b(folder_ + "/b", "n0");
  a.Note(Attempt{0, 2, 2, 4, 2, "w0"});
  b.Note(Attempt{0, 0, 2, 4, 2, "w0"});
  a.Note(Attempt{1, 0, 2, 2, 1, "w1"});
  std::vector<WorkerLog> logs = ListWorkerLogs({{folder_ + "/a"}, {folder_ + "/b"}});
  for (WorkerLog& log : logs) log.path.clear();
  EXPECT_THAT(logs,
              ElementsAre(WorkerLog{0, 1, 1, "n0", true, ""}, WorkerLog{0, 3, 1, "n1", false, ""},
                          WorkerLog{1, 1, 1, "", false, ""},
                          // Not noted.
                          WorkerLog{2, std::nullopt, 0, "", false, ""}));
}

TEST_F(LogTreeTest, AgentsThatMetBelongTogether) {
  for (const char* name : {"a", "b", "c", "other", "older", "no_record/attempt_0/0"}) {
    fs::create_directories(folder_ + "/" + name);
  }
  auto named = [this](const char* name) { return folder_ + "/" + name; };
  RunRecordWriter a(named("a"), "a"), b(named("b"), "b"), c(named("c"), "c"),
      other(named("other"), "other"), older(named("older"), "older");
  // c came for a; b met both. The same numbers of another job say nothing.
  a.Note(Attempt{0, 0, 1, 2, 2, "w0"});
  b.Note(Attempt{0, 1, 1, 2, 2, "w0"});
  b.Note(Attempt{1, 0, 1, 2, 2, "w1"});
  c.Note(Attempt{1, 1, 1, 2, 2, "w1"});
  other.Note(Attempt{0, 0, 1, 2, 2, "v0"});
  auto found = [&](const std::string& log_dir, const char* name) {
    std::vector<std::string> paths;
    for (const RunFolder& folder : FoldersOfJob(log_dir, named(name))) paths.push_back(folder.path);
    return paths;
  };
  EXPECT_THAT(found(folder_, "a"), ElementsAre(named("a"), named("b"), named("c")));
  EXPECT_THAT(found(folder_, "c"), ElementsAre(named("a"), named("b"), named("c")));
  EXPECT_THAT(found(folder_, "older"), ElementsAre(named("older")));
  EXPECT_THAT(found(folder_, "no_record"), ElementsAre(named("no_record")));
  // A run that was named is shown alone.
  EXPECT_THAT(found(named("a"), "a"), ElementsAre(named("a")));
}

TEST_F(LogTreeTest, KnowsWhoStillWrites) {
  for (const char* name : {"a", "b", "elsewhere"}) fs::create_directories(folder_ + "/" + name);
  auto writing = [this] {
    std::vector<Writing> answers;
    for (const RunFolder& folder : FoldersOfJob(folder_, folder_ + "/a")) {
      answers.push_back(folder.writing);
    }
    return answers;
  };
  EXPECT_THAT(writing(), ElementsAre(Writing::kUnknown));
  auto a = std::make_unique<RunRecordWriter>(folder_ + "/a", "a");
  auto b = std::make_unique<RunRecordWriter>(folder_ + "/b", "b");
  // Another machine's, whose lock can't be seen from here.
  std::ofstream(folder_ + "/elsewhere/.muster_run")
      << "format 1\nnode e\nboot another\nlocked\nattempt 0 2 1 3 3 w\n";
  a->Note(Attempt{0, 0, 1, 3, 3, "w"});
  b->Note(Attempt{0, 1, 1, 3, 3, "w"});
  EXPECT_THAT(writing(), ElementsAre(Writing::kGoesOn, Writing::kGoesOn, Writing::kGoesOn));
  b.reset();
  EXPECT_THAT(writing(), ElementsAre(Writing::kGoesOn, Writing::kWasKilled, Writing::kGoesOn));
  // It left, the others may go on.
  a->Note(End{75, false});
  EXPECT_THAT(writing(), ElementsAre(Writing::kEnded, Writing::kWasKilled, Writing::kGoesOn));
  a->Note(End{0, true});
  EXPECT_THAT(writing(), ElementsAre(Writing::kEnded, Writing::kWasKilled, Writing::kWasKilled));
}

TEST_F(LogTreeTest, FindsTheNewestRunBelowALogFolder) {
  Make("none_a/attempt_0/0/stdout.log");
  Make("none_b/attempt_0/0/stdout.log");
  Make("something/else");
  EXPECT_EQ(*FindRunFolder(folder_ + "/none_a"), folder_ + "/none_a");
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(folder_ + "/none_a", now);
  fs::last_write_time(folder_ + "/none_b", now - std::chrono::hours(1));
  fs::last_write_time(folder_ + "/something", now + std::chrono::hours(1));
  EXPECT_EQ(*FindRunFolder(folder_), folder_ + "/none_a");
  // Before its first attempt, too.
  fs::create_directories(folder_ + "/none_c");
  RunRecordWriter begun(folder_ + "/none_c", "n");
  fs::last_write_time(folder_ + "/none_c", now + std::chrono::hours(2));
  EXPECT_EQ(*FindRunFolder(folder_), folder_ + "/none_c");
}

TEST_F(LogTreeTest, SaysWhatIsMissing) {
  EXPECT_THAT(FindRunFolder(folder_).status().message(), HasSubstr("holds no logs of a run; name"));
  EXPECT_THAT(FindRunFolder(folder_ + "/none").status().message(), HasSubstr("is no folder; name"));
  EXPECT_THAT(ListWorkerLogs({{folder_ + "/none"}}), ElementsAre());
}

}  // namespace
}  // namespace muster::launcher
