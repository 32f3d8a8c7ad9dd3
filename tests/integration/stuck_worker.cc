// A worker for hang_nodes_test.py: makes five steps, each with an all-reduce, and goes no further.
//
//   stuck_worker own-code N   rank N hangs in its own code; the others wait for it in an all-reduce
//   stuck_worker deadlock     each rank waits for what the next one should send, and none does
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "worker_sdk/muster.h"

namespace {

using namespace muster;

constexpr int64_t kLastStep = 5;

int Fail(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

// Not inlined, so that a stack shows it.
[[gnu::noinline]] void HangForEver() {
  volatile bool goes_on = true;
  while (goes_on) poll(nullptr, 0, 100);
}

int Run(const std::string& mode, int who) {
  auto context = Context::Create();
  if (!context.ok()) return Fail(context.status());
  auto group = CreateProcessGroup(**context);
  if (!group.ok()) return Fail(group.status());
  std::vector<float> values(100, 1.0F);
  for (int64_t step = 1; step <= kLastStep; ++step) {
    Status status = (*group)->AllReduce(MutableView(values), ReduceOp::kAvg).Wait();
    if (!status.ok()) return Fail(status);
    (*context)->StepDone(step);
  }
  if (mode == "own-code" && (*context)->rank() == who) HangForEver();
  if (mode == "own-code") return Fail((*group)->Barrier().Wait());
  const int next = ((*context)->rank() + 1) % (*context)->world_size();
  return Fail((*group)->Receive(MutableView(values), next).Wait());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  return Run(argv[1], argc > 2 ? std::atoi(argv[2]) : -1);
}
