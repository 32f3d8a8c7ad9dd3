// Which processors each worker of this node may use, as --numa-binding and --bind-to say. Pure.
#ifndef MUSTER_LAUNCHER_NUMA_BINDING_H_
#define MUSTER_LAUNCHER_NUMA_BINDING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/processor_topology.h"
#include "launcher/run_options.h"

namespace muster::launcher {

// For each local rank the numbers of its processors, ascending. Worker i is near GPU i, as torchrun
// has it; where no GPU is visible, workers are spread over the NUMA nodes in blocks (the first ones
// on the first node). `exclusive` divides the cores of a node among those that are near it: all of
// its GPUs, used or not, or all of its workers. `core` gives worker i the i-th core, whatever GPUs
// there are, as mpirun does with --map-by core. `binding` isn't kNone.
//
// InvalidArgument: one sentence, that begins with `flag`, for fewer GPUs than workers, a node
// without processors that this process may use, or fewer cores than `exclusive` or `core` need.
absl::StatusOr<std::vector<std::vector<int>>> BindWorkers(NumaBinding binding,
                                                          const ProcessorTopology& topology,
                                                          int worker_count,
                                                          const std::string& flag);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_NUMA_BINDING_H_
