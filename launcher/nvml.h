// Asks NVIDIA's management library how many GPUs there are. The library belongs to the driver and
// is opened at run time, so that one binary runs where there is none. Not thread-safe.
#ifndef MUSTER_LAUNCHER_NVML_H_
#define MUSTER_LAUNCHER_NVML_H_

#include <optional>

namespace muster::launcher {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// Nothing if the library isn't there or doesn't answer. A GPU that has fallen off the bus isn't
// counted, though its device file may still be there.
std::optional<int> CountGpusByNvml(const char* library = kNvmlLibrary);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_NVML_H_
