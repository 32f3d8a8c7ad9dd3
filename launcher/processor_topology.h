// Which processors of this machine belong together, and to which of them each GPU is near, read
// from what the kernel says below /sys and /proc. Reads files; starts nothing. Thread-safe.
#ifndef MUSTER_LAUNCHER_PROCESSOR_TOPOLOGY_H_
#define MUSTER_LAUNCHER_PROCESSOR_TOPOLOGY_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launcher {

struct Processor {
  // NUMA node, package, and the lowest processor of the same core and of the same last-level cache.
  int node = 0;
  int socket = 0;
  int core = 0;
  int cache = 0;
  friend bool operator==(const Processor&, const Processor&) = default;
};

struct ProcessorTopology {
  // Those that this process may use, by number.
  std::map<int, Processor> processors;
  // The NUMA node of each GPU that workers see, in their order.
  std::vector<int> gpu_nodes;
};

// `root` stands before each path ("" outside of tests); `allowed`: the numbers of the processors
// that this process may use; `visible_gpus`: CUDA_VISIBLE_DEVICES, or null. What the kernel doesn't
// tell is 0, or the processor itself.
ProcessorTopology ReadTopology(const std::string& root, const std::set<int>& allowed,
                               const char* visible_gpus);

// The numbers of "0-2,4,6-7". Parts that make no sense are left out.
std::set<int> ParseRanges(std::string_view text);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_PROCESSOR_TOPOLOGY_H_
