#include "launcher/cpu_quota.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

// A machine's files below a folder of its own.
class CpuQuotaTest : public testing::Test {
 protected:
  CpuQuotaTest() : root_(testing::TempDir() + "/root_XXXXXX") {
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
  }
  ~CpuQuotaTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

constexpr char kVersion2[] =
    "22 1 0:20 / /proc rw - proc proc rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char kVersion1[] =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:8 - cgroup cgroup rw,cpu,cpuacct\n";

TEST(CpuLimit, RoundsUp) {
  EXPECT_EQ(CpuLimitFromMax("200000 100000\n"), 2);
  EXPECT_EQ(CpuLimitFromMax("150000 100000\n"), 2);
  EXPECT_EQ(CpuLimitFromMax("1000 100000\n"), 1);
  EXPECT_EQ(CpuLimitFromCfs("250000\n", "100000\n"), 3);
  EXPECT_EQ(CpuLimitFromCfs("50000", "100000"), 1);
}

TEST(CpuLimit, IsNoneWhereNothingIsSet) {
  for (const char* none : {"max 100000\n", "", "0 0", "x y", "100000"}) {
    EXPECT_EQ(CpuLimitFromMax(none), std::nullopt) << none;
  }
  EXPECT_EQ(CpuLimitFromCfs("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(CpuLimitFromCfs("100000", "0"), std::nullopt);
  EXPECT_EQ(CpuLimitFromCfs("", ""), std::nullopt);
}

TEST_F(CpuQuotaTest, Version2TakesTheTightestUpToTheTop) {
  Write("/proc/self/mountinfo", kVersion2);
  Write("/proc/self/cgroup", "0::/user.slice/job.scope\n");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  Write("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "max 100000\n");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  Write("/sys/fs/cgroup/user.slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 3);
  Write("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "150000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 2);
}

TEST_F(CpuQuotaTest, Version1HasItsOwnFiles) {
  Write("/proc/self/mountinfo", kVersion1);
  Write("/proc/self/cgroup", "5:cpuset:/\n4:cpu,cpuacct:/slurm/job_7\n0::/\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/slurm/job_7/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/slurm/job_7/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  Write("/sys/fs/cgroup/cpu,cpuacct/slurm/job_7/cpu.cfs_quota_us", "350000\n");
  EXPECT_EQ(CpuQuota(root_), 4);
}

TEST_F(CpuQuotaTest, AContainersGroupMayBeMountedAsTheTop) {
  Write("/proc/self/mountinfo",
        "40 39 0:29 /docker/ab12 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  Write("/proc/self/cgroup", "4:cpu:/docker/ab12\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota(root_), 2);
}

TEST_F(CpuQuotaTest, NothingIsKnownWithoutTheFiles) {
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  Write("/proc/self/mountinfo", "nonsense - \n\n1 2 3\n");
  Write("/proc/self/cgroup", "::\nx\n0::/a\n");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
}

}  // namespace
}  // namespace muster::launcher
