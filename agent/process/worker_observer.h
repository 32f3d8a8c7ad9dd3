// A ProcessObserver for tests: writes down what it is told, and lets the test wait for it with a
// deadline. Thread-safe.
#ifndef MUSTER_AGENT_PROCESS_WORKER_OBSERVER_H_
#define MUSTER_AGENT_PROCESS_WORKER_OBSERVER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/process/process_runner.h"

namespace muster::agent {

class WorkerObserver : public ProcessObserver {
 public:
  struct Exited {
    RoundId round;
    LocalRank local_rank;
    int64_t pid = 0;
    WorkerExit exit;
  };
  struct Seen {
    std::map<LocalRank, int64_t> started;
    std::map<LocalRank, int> failed_to_start;
    std::vector<Exited> exited;
    std::vector<std::pair<RoundId, std::vector<int64_t>>> gone;
    std::vector<std::vector<int64_t>> left_behind;
    std::vector<std::string> preload_lost;
    std::vector<std::string> lost;
  };

  void OnWorkerStarted(RoundId /*round*/, LocalRank local_rank, int64_t pid) override {
    Note([&] { seen_.started[local_rank] = pid; });
  }
  void OnWorkerFailedToStart(RoundId /*round*/, LocalRank local_rank, int error) override {
    Note([&] { seen_.failed_to_start[local_rank] = error; });
  }
  void OnWorkerExited(RoundId round, LocalRank local_rank, int64_t pid, WorkerExit exit,
                      Instant /*at*/) override {
    Note([&] { seen_.exited.push_back({round, local_rank, pid, exit}); });
  }
  void OnLeftBehind(RoundId /*round*/, std::vector<int64_t> pids, Duration /*grace*/) override {
    Note([&] { seen_.left_behind.push_back(std::move(pids)); });
  }
  void OnGroupGone(RoundId round, std::vector<int64_t> unkillable) override {
    Note([&] { seen_.gone.emplace_back(round, std::move(unkillable)); });
  }
  void OnPreloadLost(std::string why) override {
    Note([&] { seen_.preload_lost.push_back(std::move(why)); });
  }
  void OnGuardianLost(std::string why) override {
    Note([&] { seen_.lost.push_back(std::move(why)); });
  }

  // False if `is_enough` doesn't come true in time.
  bool WaitFor(const std::function<bool(const Seen&)>& is_enough,
               std::chrono::seconds patience = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return is_enough(seen_); });
  }
  Seen seen() const {
    std::unique_lock lock(mutex_);
    return seen_;
  }

 private:
  void Note(const std::function<void()>& note) {
    std::unique_lock lock(mutex_);
    note();
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Seen seen_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_WORKER_OBSERVER_H_
