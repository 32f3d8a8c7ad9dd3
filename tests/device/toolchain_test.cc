// The build finds CUDA and NCCL at configure time, or does without. Built only where they were
// found.
#include <gtest/gtest.h>
#include <nccl.h>

#include <vector>

#include "tests/device/vector_add.h"

namespace muster::device {
namespace {

TEST(Toolchain, NcclHeaderHasWhatTheDataPlaneNeeds) {
  // Revoke and Shrink, which recovery without a new process rests on, came with 2.27 and 2.28.
  EXPECT_GE(NCCL_VERSION_CODE, NCCL_VERSION(2, 18, 0)) << "this nccl.h is older than any we know";
}

TEST(Toolchain, AKernelRunsWhereThereIsAGpu) {
  if (GpuCount() == 0) GTEST_SKIP() << "no GPU on this machine";
  std::vector<float> a(1000), b(1000), out(1000);
  for (int i = 0; i < 1000; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 0.5f * static_cast<float>(i);
  }
  ASSERT_TRUE(VectorAdd(a.data(), b.data(), out.data(), 1000));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(out[i], 1.5f * static_cast<float>(i));
}

}  // namespace
}  // namespace muster::device
