// For tests: a world whose ranks are threads of this process, each with a group of its own over
// real TCP connections on loopback.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_GROUP_RIG_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_GROUP_RIG_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/entropy.h"
#include "gtest/gtest.h"
#include "worker_sdk/collectives/cpu/cpu_group.h"
#include "worker_sdk/context/abort_signal.h"
#include "worker_sdk/context/memory_store.h"

namespace muster::cpu {

class GroupRig {
 public:
  explicit GroupRig(int world_size, Algorithm algorithm = Algorithm::kDirect) {
    options_.world_size = world_size;
    options_.algorithm = algorithm;
    options_.world = {RoundId(1), base::FreshId<WorldId>()};
    options_.key = base::FreshId<RoundKey>();
    options_.connect_patience = std::chrono::seconds(60);
    for (int r = 0; r < world_size; ++r) aborts_.push_back(std::make_unique<AbortSignal>());
  }

  CpuGroupOptions& options() { return options_; }
  CpuGroupOptions OptionsOf(int rank) const {
    CpuGroupOptions options = options_;
    options.rank = rank;
    return options;
  }
  MemoryStore& store() { return store_; }
  AbortSignal& abort(int rank) { return *aborts_[static_cast<size_t>(rank)]; }

  Result<std::unique_ptr<ProcessGroup>> Join(int rank) {
    return CreateCpuGroup(store_, abort(rank), OptionsOf(rank));
  }

  // Runs `body` on every rank at the same time; returns when all have ended and left.
  void Run(const std::function<void(ProcessGroup&)>& body) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(options_.world_size));
    for (int r = 0; r < options_.world_size; ++r) {
      threads.emplace_back([this, r, &body] {
        Result<std::unique_ptr<ProcessGroup>> group = Join(r);
        ASSERT_TRUE(group.ok()) << group.status().message();
        body(**group);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  CpuGroupOptions options_;
  MemoryStore store_;
  std::vector<std::unique_ptr<AbortSignal>> aborts_;
};

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_GROUP_RIG_H_
