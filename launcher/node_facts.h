// Looks up what of this node the job's other nodes should know: versions of CUDA, driver and NCCL,
// and the number of GPUs. From names and small files alone, and only where there is a GPU: opening
// the libraries themselves would cost more than the start of a job may. Thread-safe.
#ifndef MUSTER_LAUNCHER_NODE_FACTS_H_
#define MUSTER_LAUNCHER_NODE_FACTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/job_types.h"

namespace muster::launcher {

// Of this node, now; `topology` and `wall_time_ms` are left to others.
NodeFacts LookUpNodeFacts();

// "550.54.15" from the text of /proc/driver/nvidia/version; empty if it isn't understood.
std::string DriverVersionIn(std::string_view text);

// Of the CUDA toolkit in `folder`, from its version.json or else from the name of the folder that
// it links to ("cuda-12.4"); empty if neither tells.
std::string CudaVersionIn(const std::string& folder);

// Of the first NCCL library in one of `folders`, from the name of the file that libnccl.so.2 links
// to; empty if there is none, or its name has no version (a copy within a Python package).
std::string NcclVersionIn(const std::vector<std::string>& folders);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_NODE_FACTS_H_
