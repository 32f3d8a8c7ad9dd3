// Over files of the test's own in place of the kernel's.
#include "agent/memory_watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr WorkerExit kKilled{.signal = SIGKILL};

class MemoryWatchTest : public testing::Test {
 protected:
  MemoryWatchTest() {
    char name[] = "/tmp/memory_watch_XXXXXX";
    folder_ = mkdtemp(name);
    Write("proc/self/mountinfo", "30 24 0:26 / " + folder_ + "/cg rw - cgroup2 cgroup2 rw\n");
    Write("proc/self/cgroup", "0::/job/node\n");
    Write("proc/77/cgroup", "0::/job/node\n");
    Write("cg/job/memory.max", "104857600\n");
    Write("cg/job/memory.peak", "104857600\n");
    Write("cg/job/node/memory.max", "max\n");
    Write("cg/job/node/memory.peak", "1\n");
    SetKills(4);
    Write("kmsg", "");
  }
  ~MemoryWatchTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name) << text;
  }
  void SetKills(int kills) const {
    Write("cg/job/node/memory.events", "oom 9\noom_kill " + std::to_string(kills) + "\n");
  }
  MemoryWatch::Options Options() const {
    return {.proc = folder_ + "/proc", .kernel_log = folder_ + "/kmsg"};
  }
  std::string folder_;
};

TEST_F(MemoryWatchTest, ReadsTheCounterBeforeTheStartAndAfterTheEnd) {
  MemoryWatch watch(Options());
  watch.RoundStarts();
  watch.WorkerStarted(LocalRank(0), 77);
  SetKills(5);
  KillEvidence found = watch.Explain(LocalRank(0), 77, kKilled);
  EXPECT_TRUE(found.out_of_memory);
  // The limit is the parent's.
  EXPECT_EQ(found.text,
            "the kernel killed it for want of memory: the cgroup's limit is 100.0 MiB, its peak "
            "100.0 MiB, oom_kill rose from 4 to 5");
  // One kill explains one worker; the next round begins anew.
  EXPECT_FALSE(watch.Explain(LocalRank(1), 78, kKilled).out_of_memory);
  watch.RoundStarts();
  EXPECT_EQ(watch.Explain(LocalRank(0), 77, kKilled).text, "");
}

TEST_F(MemoryWatchTest, AWorkerThatWasPutElsewhereHasItsOwnAccount) {
  Write("proc/79/cgroup", "0::/other\n");
  Write("cg/other/memory.events", "oom_kill 0\n");
  MemoryWatch watch(Options());
  watch.RoundStarts();
  watch.WorkerStarted(LocalRank(0), 79);
  SetKills(5);
  EXPECT_FALSE(watch.Explain(LocalRank(0), 79, kKilled).out_of_memory);
  Write("cg/other/memory.events", "oom_kill 1\n");
  EXPECT_EQ(watch.Explain(LocalRank(0), 79, kKilled).text,
            "the kernel killed it for want of memory: its cgroup has no limit, oom_kill rose from "
            "0 to 1");
}

TEST_F(MemoryWatchTest, WithoutTheKernelsFilesNothingIsClaimed) {
  MemoryWatch watch({.proc = folder_ + "/none", .kernel_log = folder_ + "/none"});
  watch.RoundStarts();
  watch.WorkerStarted(LocalRank(0), 77);
  KillEvidence found = watch.Explain(LocalRank(0), 77, kKilled);
  EXPECT_FALSE(found.out_of_memory);
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(watch.Explain(LocalRank(0), 77, {.code = 1}).text, "");
}

// A pipe stands for /dev/kmsg: it gives one record a read, and can't be wound to its end.
TEST_F(MemoryWatchTest, ALogThatCanNotBeFollowedIsNoEvidence) {
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  MemoryWatch::Options options = Options();
  options.kernel_log = folder_ + "/fifo";
  MemoryWatch watch(options);
  watch.RoundStarts();
  SetKills(5);
  EXPECT_TRUE(watch.Explain(LocalRank(0), 77, kKilled).out_of_memory);
}

}  // namespace
}  // namespace muster::agent
