#include "rendezvous/core/facts_check.h"

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

NodeOnRecord Node(const std::string& name, Duration received = seconds(100)) {
  NodeOnRecord node;
  node.name = name;
  node.facts.cuda_version = "12.4";
  node.facts.driver_version = "550.54.15";
  node.facts.nccl_version = "2.21.5";
  node.facts.gpu_count = 8;
  node.facts.wall_time_ms = 1'700'000'000'000 + received / milliseconds(1);
  node.received = Instant(received);
  return node;
}

TEST(FactsCheck, EqualNodesDoNotDiffer) {
  EXPECT_EQ(DifferencesOf(Node("a"), Node("b", seconds(900))), "");
}

TEST(FactsCheck, BothValuesAndBothNodesAreNamed) {
  NodeOnRecord b = Node("b");
  b.facts.cuda_version = "12.2";
  b.facts.driver_version = "535.104.05";
  b.facts.nccl_version = "2.18.3";
  b.facts.gpu_count = 1;
  EXPECT_EQ(
      DifferencesOf(Node("a"), b),
      "nodes differ (the job goes on): CUDA 12.2 on node b and 12.4 on node a; driver "
      "535.104.05 on node b and 550.54.15 on node a; NCCL 2.18.3 on node b and 2.21.5 on node "
      "a; 1 GPU on node b and 8 GPUs on node a");
}

TEST(FactsCheck, WhatANodeLacksIsNoOtherVersion) {
  NodeOnRecord b = Node("b");
  b.facts.cuda_version = "";
  b.facts.nccl_version = "";
  EXPECT_EQ(DifferencesOf(Node("a"), b), "");
  EXPECT_EQ(DifferencesOf(b, Node("a")), "");
}

TEST(FactsCheck, ANodeOfWhichNothingIsKnownDoesNotDiffer) {
  NodeOnRecord unknown;
  unknown.name = "b";
  EXPECT_EQ(DifferencesOf(Node("a"), unknown), "");
  EXPECT_EQ(DifferencesOf(unknown, Node("a")), "");
}

TEST(FactsCheck, ClocksMayBeFiveSecondsApart) {
  NodeOnRecord b = Node("b", seconds(110));
  b.facts.wall_time_ms += 5000;
  EXPECT_EQ(DifferencesOf(Node("a"), b), "");
  b.facts.wall_time_ms += 1500;
  EXPECT_EQ(DifferencesOf(Node("a"), b),
            "nodes differ (the job goes on): the clock of node b is 6 s ahead of that of node a");
  b.facts.wall_time_ms -= 60'000;
  EXPECT_EQ(DifferencesOf(Node("a"), b),
            "nodes differ (the job goes on): the clock of node b is 53 s behind that of node a");
}

TEST(FactsCheck, AClockThatDriftsSlowlyOverWeeksIsForgiven) {
  NodeOnRecord b = Node("b", hours(24 * 14));
  b.facts.wall_time_ms += 100'000;  // 83 ppm
  EXPECT_EQ(DifferencesOf(Node("a"), b), "");
  b.facts.wall_time_ms += 60'000;
  EXPECT_NE(DifferencesOf(Node("a"), b), "");
}

}  // namespace
}  // namespace muster::rendezvous
