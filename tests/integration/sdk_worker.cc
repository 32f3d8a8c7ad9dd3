// A worker that uses the SDK and does nothing else: it says which round it runs in, leaves its pid,
// and exits 0 when the file `finish` is in its working directory. With "adding" as its argument it
// adds up ranks over all workers all the time, and fails when that can't be done; with "meeting"
// too, but rank 0 comes to the others when the file `meet` is there; with "where" it says which
// device it would use, and ends.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "worker_sdk/muster.h"

namespace {

int Fail(const muster::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

void AwaitFile(const char* name) {
  while (access(name, F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// Rank 0 decides when all end: they have to add up the same number of times.
int AddUntilFinished(muster::Context& context) {
  auto group = muster::CreateProcessGroup(context);
  if (!group.ok()) return Fail(group.status());
  const int world = (*group)->world_size();
  std::vector<float> values(2);
  do {
    const bool sees_end = context.rank() == 0 && access("finish", F_OK) == 0;
    values = {static_cast<float>(context.rank()), sees_end ? 1.0F : 0.0F};
    muster::Status status =
        (*group)->AllReduce(muster::MutableView(values), muster::ReduceOp::kSum).Wait();
    if (!status.ok()) return Fail(status);
    const auto expected = world * (world - 1) / 2;
    if (values[0] != static_cast<float>(expected)) return 2;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  } while (values[1] == 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  auto context = muster::Context::Create();
  if (!context.ok()) return Fail(context.status());
  if (argc > 1 && std::string_view(argv[1]) == "where") {
    std::printf("local rank %d, device %d\n", (*context)->local_rank(), (*context)->device_index());
    return 0;
  }
  const std::string place =
      std::to_string((*context)->world().round.value) + "." + std::to_string((*context)->rank());
  std::ofstream("up." + place) << getpid();
  std::printf("runs round %llu: %d of %d\n",
              static_cast<unsigned long long>((*context)->world().round.value), (*context)->rank(),
              (*context)->world_size());
  std::fflush(stdout);
  if (argc > 1 && std::string_view(argv[1]) == "meeting" && (*context)->rank() == 0)
    AwaitFile("meet");
  if (argc > 1) return AddUntilFinished(**context);
  AwaitFile("finish");
  return 0;
}
