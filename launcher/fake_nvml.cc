// Plays NVIDIA's management library for nvml_test: FAKE_NVML_COUNT says how many GPUs there are, or
// isn't set, and then nothing works.
#include <cstdlib>

namespace {

int opened = 0;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (std::getenv("FAKE_NVML_COUNT") == nullptr) return 9;  // NVML_ERROR_DRIVER_NOT_LOADED
  ++opened;
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  if (opened == 0) return 1;  // NVML_ERROR_UNINITIALIZED
  *count = static_cast<unsigned>(std::atoi(std::getenv("FAKE_NVML_COUNT")));
  return 0;
}

int nvmlShutdown() {
  --opened;
  return 0;
}

}  // extern "C"
