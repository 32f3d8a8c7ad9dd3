// The text as kernels write it: versions 1, 2 and both, on hosts and in containers.
#include "agent/core/memory_cgroup.h"

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

constexpr char kMountsV1[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr char kMountsV2[] =
    "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(FindMemoryCgroup, TakesTheMemoryHierarchyOfVersion1) {
  auto found = FindMemoryCgroup("9:name=systemd:/\n4:memory:/jobs/a:b\n1:cpu:/\n0::/\n", kMountsV1);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (MemoryCgroup{.version = 1,
                                  .folder = "/sys/fs/cgroup/memory/jobs/a:b",
                                  .mount_point = "/sys/fs/cgroup/memory"}));
  EXPECT_STREQ(found->events_file(), "memory.oom_control");
  EXPECT_EQ(found->UpToTheRoot(),
            (std::vector<std::string>{"/sys/fs/cgroup/memory/jobs/a:b",
                                      "/sys/fs/cgroup/memory/jobs", "/sys/fs/cgroup/memory"}));
}

TEST(FindMemoryCgroup, TakesVersion2WhereVersion1HasNoMemoryController) {
  auto found = FindMemoryCgroup("0::/user.slice/session-3.scope\n", kMountsV2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, 2);
  EXPECT_EQ(found->folder, "/sys/fs/cgroup/user.slice/session-3.scope");
  EXPECT_STREQ(found->limit_file(), "memory.max");
  // Both mounted, and the controller handed to version 2.
  auto hybrid = FindMemoryCgroup("1:cpu:/\n0::/a\n", kMountsV1);
  ASSERT_TRUE(hybrid);
  EXPECT_EQ(hybrid->folder, "/sys/fs/cgroup/unified/a");
}

TEST(FindMemoryCgroup, ControllersMayShareAHierarchy) {
  auto found =
      FindMemoryCgroup("2:cpu,memory:/x\n",
                       "35 31 0:32 / /sys/fs/cgroup/cpu,memory rw - cgroup cgroup rw,cpu,memory\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->folder, "/sys/fs/cgroup/cpu,memory/x");
}

TEST(FindMemoryCgroup, AContainersMountBeginsBelowTheRoot) {
  constexpr char kMounts[] =
      "35 31 0:32 /docker/77 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
  auto own = FindMemoryCgroup("4:memory:/docker/77\n", kMounts);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->folder, "/sys/fs/cgroup/memory");
  EXPECT_EQ(own->UpToTheRoot().size(), 1u);
  EXPECT_EQ(FindMemoryCgroup("4:memory:/docker/77/sub\n", kMounts)->folder,
            "/sys/fs/cgroup/memory/sub");
  // Not visible from here.
  EXPECT_FALSE(FindMemoryCgroup("4:memory:/docker/778\n", kMounts));
  EXPECT_FALSE(FindMemoryCgroup("0::/../outside\n", kMountsV2));
}

TEST(FindMemoryCgroup, OddTextIsUnknown) {
  for (const char* cgroups : {"", "\n", "4:memory", "4:memory:relative", "x"}) {
    EXPECT_FALSE(FindMemoryCgroup(cgroups, kMountsV1)) << cgroups;
  }
  for (const char* mounts : {"", "-", "1 2 3 - cgroup", "a - cgroup2"}) {
    EXPECT_FALSE(FindMemoryCgroup("4:memory:/a\n", mounts)) << mounts;
  }
}

TEST(FindMemoryCgroup, BlanksInTheMountPointAreUnescaped) {
  auto found = FindMemoryCgroup("0::/a\n", R"(1 2 0:3 / /mnt/my\040cg\134x rw - cgroup2 c rw)");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->folder, "/mnt/my cg\\x/a");
}

TEST(OomKills, AreCountedInBothVersions) {
  EXPECT_EQ(OomKills("low 0\nhigh 0\nmax 4711\noom 3\noom_kill 2\noom_group_kill 0\n"), 2u);
  EXPECT_EQ(OomKills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), 1u);
  // Kernels before 4.13.
  EXPECT_FALSE(OomKills("oom_kill_disable 0\nunder_oom 0\n"));
  EXPECT_FALSE(OomKills("oom_kill\n"));
  EXPECT_FALSE(OomKills("oom_kill many\n"));
  EXPECT_FALSE(OomKills(""));
}

TEST(MemoryLimit, KnowsThatThereIsNone) {
  EXPECT_EQ(MemoryLimit("209715200\n"), 209715200u);
  EXPECT_FALSE(MemoryLimit("max\n"));
  EXPECT_FALSE(MemoryLimit("9223372036854771712\n"));
  EXPECT_FALSE(MemoryLimit("18446744073709551616\n"));
  EXPECT_FALSE(MemoryLimit(""));
  EXPECT_EQ(WholeFileNumber("12288\n"), 12288u);
  EXPECT_FALSE(WholeFileNumber("12 288\n"));
}

}  // namespace
}  // namespace muster::agent
