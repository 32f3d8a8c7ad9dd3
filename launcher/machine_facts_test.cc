#include "launcher/machine_facts.h"

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

TEST(MachineFacts, ReadsTheCgroupsLimitRoundedUp) {
  EXPECT_EQ(CpuLimitFromCgroup("200000 100000\n"), 2);
  EXPECT_EQ(CpuLimitFromCgroup("150000 100000\n"), 2);
  EXPECT_EQ(CpuLimitFromCgroup("1000 100000\n"), 1);
  for (const char* none : {"max 100000\n", "", "0 0", "x y", "100000"}) {
    EXPECT_EQ(CpuLimitFromCgroup(none), std::nullopt) << none;
  }
}

TEST(MachineFacts, CountsGpusThatWorkersWillSee) {
  EXPECT_EQ(CountVisibleGpus(nullptr, 4), 4);
  EXPECT_EQ(CountVisibleGpus("", 4), 0);
  EXPECT_EQ(CountVisibleGpus("0,2", 4), 2);
  EXPECT_EQ(CountVisibleGpus("0, 3", 4), 2);
  EXPECT_EQ(CountVisibleGpus("0,-1,2", 4), 1);
  EXPECT_EQ(CountVisibleGpus("0,4,1", 4), 1);
  EXPECT_EQ(CountVisibleGpus("GPU-8932f937,MIG-1", 4), 2);
}

TEST(MachineFacts, LooksUpThisMachine) {
  MachineFacts facts = LookUpMachine(true);
  EXPECT_GE(facts.cpu_count, 1);
  EXPECT_EQ(facts.fresh_run_id.size(), 36u);
  EXPECT_NE(facts.fresh_run_id, LookUpMachine(false).fresh_run_id);
  EXPECT_FALSE(HostName().empty());
}

}  // namespace
}  // namespace muster::launcher
