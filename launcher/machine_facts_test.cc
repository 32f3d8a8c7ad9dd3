#include "launcher/machine_facts.h"

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

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
  MachineFacts facts = LookUpMachine({.counts = true, .topology = true});
  EXPECT_GE(facts.cpu_count, 1);
  EXPECT_GE(facts.topology.processors.size(), 1u);
  EXPECT_EQ(facts.fresh_run_id.size(), 36u);
  EXPECT_NE(facts.fresh_run_id, LookUpMachine({}).fresh_run_id);
  EXPECT_FALSE(HostName().empty());
}

}  // namespace
}  // namespace muster::launcher
