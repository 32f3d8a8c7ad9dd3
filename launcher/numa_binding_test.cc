#include "launcher/numa_binding.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;
using Bound = std::vector<std::vector<int>>;

// Two sockets with two nodes each; each node has two cores of two threads, and each core a cache.
// Threads of one core are 8 apart, as kernels number them.
ProcessorTopology Big() {
  ProcessorTopology topology;
  for (int i = 0; i < 16; ++i) {
    int core = i % 8;
    topology.processors[i] = {.node = core / 2, .socket = core / 4, .core = core, .cache = core};
  }
  return topology;
}

Bound Bind(NumaBinding binding, const ProcessorTopology& topology, int workers) {
  absl::StatusOr<Bound> bound = BindWorkers(binding, topology, workers, "--flag");
  EXPECT_TRUE(bound.ok()) << bound.status().message();
  return bound.value_or(Bound{});
}

std::string ErrorOf(NumaBinding binding, const ProcessorTopology& topology, int workers) {
  absl::StatusOr<Bound> bound = BindWorkers(binding, topology, workers, "--flag");
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(bound.status().message());
}

TEST(NumaBinding, WorkersAreNearTheirGpus) {
  ProcessorTopology topology = Big();
  topology.gpu_nodes = {3, 0, 0, 1};
  EXPECT_EQ(Bind(NumaBinding::kNode, topology, 2), (Bound{{6, 7, 14, 15}, {0, 1, 8, 9}}));
  EXPECT_EQ(Bind(NumaBinding::kSocket, topology, 2),
            (Bound{{4, 5, 6, 7, 12, 13, 14, 15}, {0, 1, 2, 3, 8, 9, 10, 11}}));
}

TEST(NumaBinding, ExclusiveDividesANodesCoresAmongItsGpus) {
  ProcessorTopology topology = Big();
  topology.gpu_nodes = {3, 0, 0, 1};
  // The third GPU has its share though nobody uses it.
  EXPECT_EQ(Bind(NumaBinding::kExclusive, topology, 2), (Bound{{6, 7, 14, 15}, {0, 8}}));
  EXPECT_EQ(Bind(NumaBinding::kExclusive, topology, 4)[2], (std::vector<int>{1, 9}));
  topology.gpu_nodes = {0, 0, 0};
  EXPECT_EQ(ErrorOf(NumaBinding::kExclusive, topology, 1),
            "--numa-binding=exclusive: NUMA node 0 has 2 cores for 3 GPUs; start fewer workers, or "
            "take --numa-binding=node");
}

TEST(NumaBinding, WhatIsLeftOverGoesToTheFirst) {
  ProcessorTopology topology;
  for (int i = 0; i < 5; ++i) topology.processors[i] = {.core = i, .cache = i / 3};
  EXPECT_EQ(Bind(NumaBinding::kExclusive, topology, 2), (Bound{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(Bind(NumaBinding::kExclusive, topology, 3), (Bound{{0, 1}, {2, 3}, {4}}));
}

TEST(NumaBinding, ACoreComplexIsOneCacheTheLargestFirst) {
  ProcessorTopology topology;
  for (int i = 0; i < 5; ++i) topology.processors[i] = {.core = i, .cache = i < 2 ? 0 : 2};
  EXPECT_EQ(Bind(NumaBinding::kCoreComplex, topology, 3), (Bound{{2, 3, 4}, {0, 1}, {2, 3, 4}}));
}

TEST(NumaBinding, WithoutGpusWorkersAreSpreadOverTheNodes) {
  EXPECT_EQ(Bind(NumaBinding::kNode, Big(), 5),
            (Bound{{0, 1, 8, 9}, {0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
  EXPECT_EQ(Bind(NumaBinding::kExclusive, Big(), 5),
            (Bound{{0, 8}, {1, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
}

TEST(NumaBinding, RefusesWhatCantBe) {
  ProcessorTopology topology = Big();
  topology.gpu_nodes = {0};
  EXPECT_THAT(
      ErrorOf(NumaBinding::kNode, topology, 2),
      HasSubstr("--flag: worker i is bound near GPU i, but there are 2 workers and 1 GPU "));
  topology.gpu_nodes = {9};
  EXPECT_THAT(ErrorOf(NumaBinding::kNode, topology, 1),
              HasSubstr("NUMA node 9 of local rank 0 has no processor that this process may use"));
  EXPECT_THAT(ErrorOf(NumaBinding::kExclusive, Big(), 40),
              HasSubstr("NUMA node 0 has 2 cores for"));
}

TEST(NumaBinding, EachWorkerHasOneCoreInTheirOrderWhateverGpusThereAre) {
  ProcessorTopology topology = Big();
  topology.gpu_nodes = {3};
  EXPECT_EQ(Bind(NumaBinding::kCore, topology, 3), (Bound{{0, 8}, {1, 9}, {2, 10}}));
  EXPECT_EQ(ErrorOf(NumaBinding::kCore, topology, 9),
            "--flag=core: there are 9 workers and 8 cores that this process may use; start fewer "
            "workers, or leave --flag out");
}

}  // namespace
}  // namespace muster::launcher
