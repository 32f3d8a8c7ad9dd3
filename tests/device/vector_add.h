// One small kernel, to prove that what the build found (nvcc, the CUDA runtime) can be compiled,
// linked and, where there is a GPU, run. Host code only sees this function. Not thread-safe.
#ifndef MUSTER_TESTS_DEVICE_VECTOR_ADD_H_
#define MUSTER_TESTS_DEVICE_VECTOR_ADD_H_

namespace muster::device {

// Number of GPUs that this process can use; 0 without a driver.
int GpuCount();

// out[i] = a[i] + b[i] for `count` floats in host memory, on GPU 0. False if any CUDA call failed.
bool VectorAdd(const float* a, const float* b, float* out, int count);

}  // namespace muster::device

#endif  // MUSTER_TESTS_DEVICE_VECTOR_ADD_H_
