#include "worker_sdk/ddp/bucket_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace muster {

std::vector<Bucket> PlanBuckets(std::span<const GradientShape> gradients,
                                const BucketLimits& limits) {
  std::vector<Bucket> closed;
  std::vector<Bucket> open;  // at most one of each type, in the order of their first gradient
  std::map<DataType, size_t> closed_of_type;
  for (size_t i = gradients.size(); i-- > 0;) {
    const GradientShape& gradient = gradients[i];
    auto bucket = std::ranges::find(open, gradient.type, &Bucket::type);
    if (bucket == open.end()) bucket = open.insert(open.end(), Bucket{gradient.type, {}, 0});
    bucket->parameters.push_back(i);
    bucket->count += gradient.count;
    size_t limit = closed_of_type[gradient.type] == 0 ? limits.first_bytes : limits.bytes;
    if (bucket->count * SizeOf(gradient.type) >= limit) {
      ++closed_of_type[gradient.type];
      closed.push_back(std::move(*bucket));
      open.erase(bucket);
    }
  }
  std::ranges::move(open, std::back_inserter(closed));
  return closed;
}

}  // namespace muster
