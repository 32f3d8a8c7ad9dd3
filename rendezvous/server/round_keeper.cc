#include "rendezvous/server/round_keeper.h"

#include <utility>

#include "absl/status/status.h"
#include "spdlog/spdlog.h"

namespace muster::rendezvous {

RoundKeeper::RoundKeeper(std::unique_ptr<RoundStore> store) : store_(std::move(store)) {
  for (const auto& [run_id, world] : store_->worlds()) highest_[run_id] = world.round;
  thread_ = std::thread([this] { Run(); });
}

RoundKeeper::~RoundKeeper() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

RoundId RoundKeeper::HighestRound(const std::string& run_id) const {
  base::MutexLock lock(mutex_);
  auto found = highest_.find(run_id);
  return found == highest_.end() ? RoundId() : found->second;
}

void RoundKeeper::Keep(const std::string& run_id, const World& world) { Add(run_id, world); }

void RoundKeeper::Forget(const std::string& run_id) { Add(run_id, std::nullopt); }

void RoundKeeper::Add(const std::string& run_id, const Change& change) {
  {
    base::MutexLock lock(mutex_);
    if (change) {
      highest_[run_id] = change->round;
    } else {
      highest_.erase(run_id);
    }
    pending_[run_id] = change;
  }
  changed_.notify_all();
}

void RoundKeeper::Run() {
  while (true) {
    std::map<std::string, Change> batch;
    {
      base::MutexLock lock(mutex_);
      while (pending_.empty() && !stopping_) changed_.wait(mutex_);
      if (pending_.empty()) return;
      batch.swap(pending_);
    }
    for (const auto& [run_id, change] : batch) Write(run_id, change);
  }
}

void RoundKeeper::Write(const std::string& run_id, const Change& change) {
  const absl::Status status = change ? store_->Keep(run_id, *change) : store_->Forget(run_id);
  // The job goes on: the numbers also live in the agents.
  const std::string problem(status.message());
  if (!status.ok() && problem != last_problem_) spdlog::error("job {}: {}", run_id, problem);
  last_problem_ = problem;
}

}  // namespace muster::rendezvous
