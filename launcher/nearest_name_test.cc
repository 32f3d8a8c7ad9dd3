#include "launcher/nearest_name.h"

#include <vector>

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

constexpr std::string_view kNames[] = {"nnodes", "node-rank", "nproc-per-node", "no-python"};

TEST(NearestName, IsTheOneWithTheFewestEdits) {
  EXPECT_EQ(NearestName("nproc-per-nod", kNames), "nproc-per-node");
  EXPECT_EQ(NearestName("nnode", kNames), "nnodes");
  EXPECT_EQ(NearestName("ndoe-rank", kNames), "node-rank");
  EXPECT_EQ(NearestName("nopython", kNames), "no-python");
}

TEST(NearestName, IsTheOneThatTheWordBegins) {
  EXPECT_EQ(NearestName("nproc", kNames), "nproc-per-node");
  EXPECT_EQ(NearestName("node", kNames), "node-rank");
}

TEST(NearestName, IsEmptyOnlyWithoutNames) {
  EXPECT_EQ(NearestName("anything", {}), "");
  EXPECT_NE(NearestName("", kNames), "");
}

}  // namespace
}  // namespace muster::launcher
