#include "launcher/nvml.h"

#include <dlfcn.h>

namespace muster::launcher {

std::optional<int> CountGpusByNvml(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  // Each returns 0 (NVML_SUCCESS) or an error.
  auto* init = reinterpret_cast<int (*)()>(dlsym(handle, "nvmlInit_v2"));
  auto* count_devices =
      reinterpret_cast<int (*)(unsigned*)>(dlsym(handle, "nvmlDeviceGetCount_v2"));
  auto* shut_down = reinterpret_cast<int (*)()>(dlsym(handle, "nvmlShutdown"));
  std::optional<int> found;
  if (init != nullptr && count_devices != nullptr && shut_down != nullptr && init() == 0) {
    unsigned count = 0;
    if (count_devices(&count) == 0) found = static_cast<int>(count);
    shut_down();
  }
  // Its threads' last words may come after: it stays loaded.
  return found;
}

}  // namespace muster::launcher
