// Every worker contributes its rank + 1; all end with the sum. Runs alone (a world of one) and
// under `muster run --standalone --nproc-per-node=4 --no-python
// bazel-bin/examples/allreduce/allreduce`.
#include <cstdio>
#include <vector>

#include "worker_sdk/muster.h"

int main() {
  auto context = muster::Context::Create();
  if (!context.ok()) return std::fprintf(stderr, "%s\n", context.status().message().c_str()), 1;
  auto group = muster::CreateProcessGroup(**context);
  if (!group.ok()) return std::fprintf(stderr, "%s\n", group.status().message().c_str()), 1;

  int rank = (*group)->rank(), world = (*group)->world_size();
  std::vector<float> values(1000, static_cast<float>(rank + 1));
  muster::Status status =
      (*group)->AllReduce(muster::MutableView(values), muster::ReduceOp::kSum).Wait();
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;

  int expected = world * (world + 1) / 2;
  bool is_right = values.back() == static_cast<float>(expected);
  std::printf("rank %d of %d: sum %g, %s\n", rank, world, values.back(),
              is_right ? "right" : "WRONG");
  return is_right ? 0 : 1;
}
