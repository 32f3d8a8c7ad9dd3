// Element-wise reduction of host memory in a fixed order: the arithmetic of all CPU collectives.
// Pure functions; thread-safe.
//
// Integers wrap around. Minimum and maximum: NaN wins over any number; of two values that compare
// equal (-0.0 and 0.0) the one that comes first in the order stays.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_REDUCTION_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_REDUCTION_H_

#include <cstddef>
#include <span>

#include "worker_sdk/collectives/process_group.h"

namespace muster::cpu {

// What a reduction does to each element: `op` over all inputs, for kAvg then divided by `divisor`.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  DataType type = DataType::kF32;
  int divisor = 1;
};

// output[i] = inputs[0][i] op inputs[1][i] op ..., from left to right, for i < count. `output` may
// be one of the inputs. No alignment is needed. `inputs` isn't empty.
void ReduceInOrder(const Reduction& reduction, std::span<const std::byte* const> inputs,
                   std::byte* output, size_t count);

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_REDUCTION_H_
