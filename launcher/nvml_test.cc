#include "launcher/nvml.h"

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

std::string Fake() {
  return std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") +
         "/launcher/libfake_nvml.so";
}

TEST(Nvml, CountsWhatTheLibrarySays) {
  setenv("FAKE_NVML_COUNT", "8", 1);
  EXPECT_EQ(CountGpusByNvml(Fake().c_str()), 8);
  setenv("FAKE_NVML_COUNT", "0", 1);
  EXPECT_EQ(CountGpusByNvml(Fake().c_str()), 0);
}

TEST(Nvml, KnowsNothingWithoutADriver) {
  unsetenv("FAKE_NVML_COUNT");
  EXPECT_EQ(CountGpusByNvml(Fake().c_str()), std::nullopt);
  EXPECT_EQ(CountGpusByNvml("libno_such_library.so.1"), std::nullopt);
  // A library that is none of NVIDIA's.
  EXPECT_EQ(CountGpusByNvml("libm.so.6"), std::nullopt);
}

}  // namespace
}  // namespace muster::launcher
