// Which gradients travel together. The backward pass makes gradients in about the reverse order of
// the parameters, so buckets are filled in that order. A bucket closes when its size reaches its
// limit *after* adding (PyTorch's rule): it may overshoot by one gradient, and a large gradient
// stays whole. Each type has buckets of its own. Pure; thread-safe.
#ifndef MUSTER_WORKER_SDK_DDP_BUCKET_PLAN_H_
#define MUSTER_WORKER_SDK_DDP_BUCKET_PLAN_H_

#include <cstddef>
#include <span>
#include <vector>

#include "worker_sdk/collectives/process_group.h"

namespace muster {

struct GradientShape {
  size_t count = 0;
  DataType type = DataType::kF32;
};

struct BucketLimits {
  // The first bucket of a type is small, so that the network starts early.
  size_t first_bytes = 1u << 20;
  size_t bytes = 25u << 20;
};

struct Bucket {
  DataType type = DataType::kF32;
  // Indices of parameters, in the order in which they lie in the bucket.
  std::vector<size_t> parameters;
  // Elements in all.
  size_t count = 0;

  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// Buckets in the order in which they are sent: that in which they closed; those still open at the
// end follow in the order of their first gradient.
std::vector<Bucket> PlanBuckets(std::span<const GradientShape> gradients,
                                const BucketLimits& limits);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DDP_BUCKET_PLAN_H_
