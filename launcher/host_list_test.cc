#include "launcher/host_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// As `scontrol show hostnames` says of each list, but for what it lets pass.
TEST(HostList, IsExpandedInItsOrder) {
  EXPECT_THAT(*ExpandHostList("login"), ElementsAre("login"));
  EXPECT_THAT(*ExpandHostList("b,a"), ElementsAre("b", "a"));
  EXPECT_THAT(*ExpandHostList("gpu[01-03,7],login"),
              ElementsAre("gpu01", "gpu02", "gpu03", "gpu7", "login"));
  EXPECT_THAT(*ExpandHostList("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(*ExpandHostList("n[098-101].site.org"),
              ElementsAre("n098.site.org", "n099.site.org", "n100.site.org", "n101.site.org"));
  EXPECT_THAT(*ExpandHostList("r[1-2]n[1-2]"), ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
}

TEST(HostList, MalformedOnesAreRefused) {
  for (const char* bad :
       {"", ",", "a,", "a[", "a]", "a[]", "a[1-]", "a[-1]", "a[2-1]", "a[x]", "a[1-2-3]", "a[1",
        "[1,2", "a[[1]]", "a[1-99999999]", "a[1-1000]b[1-1000]", "a[1-99999],b[1-99999]",
        "a[1-9999999999999999999999]"}) {
    auto hosts = ExpandHostList(bad);
    ASSERT_FALSE(hosts.ok()) << bad;
    EXPECT_THAT(hosts.status().message(), HasSubstr("is no list of hosts")) << bad;
  }
}

TEST(HostList, HoldsAsManyAsTheLargestClusters) {
  EXPECT_EQ(ExpandHostList("n[1-100000]")->size(), 100'000U);
}

}  // namespace
}  // namespace muster::launcher
