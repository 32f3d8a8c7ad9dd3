#include "launcher/numa_binding.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// The node of each device (a GPU; without any, a worker).
std::vector<int> NodesOfDevices(const ProcessorTopology& topology, int worker_count) {
  if (!topology.gpu_nodes.empty()) return topology.gpu_nodes;
  std::set<int> distinct;
  for (const auto& [number, processor] : topology.processors) distinct.insert(processor.node);
  const std::vector<int> nodes(distinct.begin(), distinct.end());
  std::vector<int> of_workers;
  for (int i = 0; i < worker_count && !nodes.empty(); ++i) {
    of_workers.push_back(nodes[static_cast<size_t>(i) * nodes.size() / worker_count]);
  }
  return of_workers;
}

std::vector<int> OnNode(const ProcessorTopology& topology, int node) {
  std::vector<int> numbers;
  for (const auto& [number, processor] : topology.processors) {
    if (processor.node == node) numbers.push_back(number);
  }
  return numbers;
}

std::vector<int> OnSocketOf(const ProcessorTopology& topology, int processor) {
  const int socket = topology.processors.at(processor).socket;
  std::vector<int> numbers;
  for (const auto& [number, other] : topology.processors) {
    if (other.socket == socket) numbers.push_back(number);
  }
  return numbers;
}

// The node's processors by core or by cache.
std::vector<std::vector<int>> Grouped(const ProcessorTopology& topology,
                                      const std::vector<int>& numbers, int Processor::*key) {
  std::map<int, std::vector<int>> groups;
  for (int number : numbers) groups[topology.processors.at(number).*key].push_back(number);
  std::vector<std::vector<int>> sorted;
  for (auto& [first, group] : groups) sorted.push_back(std::move(group));
  return sorted;
}

// What is left over when `count` things are shared out goes to the first ones.
std::pair<size_t, size_t> Share(size_t count, size_t shares, size_t index) {
  const size_t each = count / shares;
  const size_t more = count % shares;
  const size_t begin = index * each + std::min(index, more);
  return {begin, begin + each + (index < more ? 1 : 0)};
}

absl::StatusOr<std::vector<int>> ExclusiveShare(const ProcessorTopology& topology, int node,
                                                size_t shares, size_t index) {
  std::vector<std::vector<int>> cores = Grouped(topology, OnNode(topology, node), &Processor::core);
  if (cores.size() < shares) {
    return absl::InvalidArgumentError(Cat("--numa-binding=exclusive: NUMA node ", node, " has ",
                                          cores.size(), cores.size() == 1 ? " core" : " cores",
                                          " for ", shares,
                                          topology.gpu_nodes.empty() ? " workers" : " GPUs",
                                          "; start fewer workers, or take --numa-binding=node"));
  }
  auto [begin, end] = Share(cores.size(), shares, index);
  std::vector<int> mine;
  for (size_t i = begin; i < end; ++i) mine.insert(mine.end(), cores[i].begin(), cores[i].end());
  std::ranges::sort(mine);
  return mine;
}

std::vector<int> OneCache(const ProcessorTopology& topology, int node, size_t index) {
  std::vector<std::vector<int>> caches =
      Grouped(topology, OnNode(topology, node), &Processor::cache);
  // Those with most processors first.
  std::ranges::stable_sort(caches, std::ranges::greater(), &std::vector<int>::size);
  return caches[index % caches.size()];
}

absl::StatusOr<std::vector<std::vector<int>>> OneCoreEach(const ProcessorTopology& topology,
                                                          int worker_count,
                                                          const std::string& flag) {
  std::set<int> nodes;
  for (const auto& [number, processor] : topology.processors) nodes.insert(processor.node);
  std::vector<std::vector<int>> cores;
  for (int node : nodes) {
    for (std::vector<int>& core : Grouped(topology, OnNode(topology, node), &Processor::core))
      cores.push_back(std::move(core));
  }
  if (cores.size() < static_cast<size_t>(worker_count)) {
    return absl::InvalidArgumentError(
        Cat(flag, "=core: there are ", worker_count, " workers and ", cores.size(),
            cores.size() == 1 ? " core" : " cores",
            " that this process may use; start fewer workers, or leave ", flag, " out"));
  }
  cores.resize(static_cast<size_t>(worker_count));
  return cores;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<int>>> BindWorkers(NumaBinding binding,
                                                          const ProcessorTopology& topology,
                                                          int worker_count,
                                                          const std::string& flag) {
  if (binding == NumaBinding::kCore) return OneCoreEach(topology, worker_count, flag);
  const std::vector<int> nodes = NodesOfDevices(topology, worker_count);
  if (static_cast<int>(nodes.size()) < worker_count) {
    return absl::InvalidArgumentError(
        Cat(flag, ": worker i is bound near GPU i, but there are ", worker_count, " workers and ",
            nodes.size(), nodes.size() == 1 ? " GPU" : " GPUs",
            " that they see; start fewer workers, or leave ", flag, " out"));
  }
  std::vector<std::vector<int>> bound;
  for (int i = 0; i < worker_count; ++i) {
    const int node = nodes[static_cast<size_t>(i)];
    const std::vector<int> on_node = OnNode(topology, node);
    if (on_node.empty()) {
      return absl::InvalidArgumentError(
          Cat(flag, ": NUMA node ", node, " of local rank ", i,
              " has no processor that this process may use; widen its affinity, or leave ", flag,
              " out"));
    }
    const auto index = static_cast<size_t>(std::count(nodes.begin(), nodes.begin() + i, node));
    const auto shares = static_cast<size_t>(std::ranges::count(nodes, node));
    switch (binding) {
      case NumaBinding::kNone:
      case NumaBinding::kCore:
      case NumaBinding::kNode:
        bound.push_back(on_node);
        break;
      case NumaBinding::kSocket:
        bound.push_back(OnSocketOf(topology, on_node.front()));
        break;
      case NumaBinding::kCoreComplex:
        bound.push_back(OneCache(topology, node, index));
        break;
      case NumaBinding::kExclusive: {
        absl::StatusOr<std::vector<int>> share = ExclusiveShare(topology, node, shares, index);
        if (!share.ok()) return share.status();
        bound.push_back(*std::move(share));
        break;
      }
    }
  }
  return bound;
}

}  // namespace muster::launcher
