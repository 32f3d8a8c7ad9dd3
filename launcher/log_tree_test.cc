#include "launcher/log_tree.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_THAT(ListWorkerLogs(folder_),
              ElementsAre(WorkerLog{2, 0, false, paths[0]}, WorkerLog{2, 2, true, paths[1]},
                          WorkerLog{2, 10, false, paths[2]}, WorkerLog{10, 0, true, paths[3]}));
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
}

TEST_F(LogTreeTest, SaysWhatIsMissing) {
  EXPECT_THAT(FindRunFolder(folder_).status().message(), HasSubstr("holds no logs of a run; name"));
  EXPECT_THAT(FindRunFolder(folder_ + "/none").status().message(), HasSubstr("is no folder; name"));
  EXPECT_THAT(ListWorkerLogs(folder_ + "/none"), ElementsAre());
}

}  // namespace
}  // namespace muster::launcher
