// A worker of the tests of cases (case_*_test.py), on the SDK. Ends well once the file `finish` is
// in its folder.
//
//   case_worker loop   all-reduces all the time; each rank tells round, rank, world and step
//   case_worker uid    rank 0 leaves a value for the others in the round's store; each rank tells
//   it;
//                      rank 0 fails once the file `fail.<round>` is there
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "worker_sdk/muster.h"

namespace {

using std::chrono::milliseconds;

constexpr char kFinish[] = "finish";

int Fail(const muster::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

void Pause() { std::this_thread::sleep_for(milliseconds(10)); }

int Loop(const muster::Context& context, muster::ProcessGroup& group) {
  constexpr int kStepsBetweenLines = 10;
  for (int64_t step = 0;; ++step) {
    // Only rank 0 looks for the file, so that all end at the same step.
    bool is_last = context.rank() == 0 && std::filesystem::exists(kFinish);
    std::vector<int64_t> sums = {1, is_last ? 1 : 0};
    muster::Status status =
        group.AllReduce(muster::MutableView(sums), muster::ReduceOp::kSum).Wait();
    if (!status.ok()) return Fail(status);
    if (sums[0] != context.world_size()) return Fail(muster::Status());
    if (step % kStepsBetweenLines == 0) {
      std::printf("round %llu rank %d of %d step %lld\n",
                  static_cast<unsigned long long>(context.world().round.value), context.rank(),
                  context.world_size(), static_cast<long long>(step));
      std::fflush(stdout);
    }
    if (sums[1] != 0) return 0;
    Pause();
  }
}

// The value is of this round, and no key of the round before can be seen.
int CheckStore(muster::Context& context, const std::string& round, const std::string& before) {
  muster::Store& store = context.store();
  muster::Result<std::string> uid = store.Get("uid", std::chrono::minutes(1));
  if (!uid.ok()) return Fail(uid.status());
  if (!uid->starts_with(round + "-")) {
    std::fprintf(stderr, "round %s was given %s\n", round.c_str(), uid->c_str());
    return 2;
  }
  if (store.Get("of." + before, milliseconds(0)).ok()) {
    std::fprintf(stderr, "round %s sees a key of round %s\n", round.c_str(), before.c_str());
    return 3;
  }
  std::printf("round %s attempt %d rank %d of %d uid %s\n", round.c_str(), context.attempt(),
              context.rank(), context.world_size(), uid->c_str());
  std::fflush(stdout);
  return 0;
}

int Uid(muster::Context& context) {
  const uint64_t number = context.world().round.value;
  const std::string round = std::to_string(number);
  if (context.rank() == 0) {
    // The others ask before it is there.
    std::this_thread::sleep_for(milliseconds(100));
    muster::Status status = context.store().Set("of." + round, "1");
    if (!status.ok()) return Fail(status);
    status = context.store().Set("uid", round + "-" + std::to_string(std::random_device()()));
    if (!status.ok()) return Fail(status);
  }
  if (int code = CheckStore(context, round, std::to_string(number - 1)); code != 0) return code;
  while (!std::filesystem::exists(kFinish)) {
    if (context.rank() == 0 && std::filesystem::exists("fail." + round)) return 9;
    Pause();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  auto context = muster::Context::Create();
  if (!context.ok()) return Fail(context.status());
  if (mode == "uid") return Uid(**context);
  if (mode != "loop") return std::fprintf(stderr, "usage: case_worker loop|uid\n"), 64;
  auto group = muster::CreateProcessGroup(**context);
  if (!group.ok()) return Fail(group.status());
  return Loop(**context, **group);
}
