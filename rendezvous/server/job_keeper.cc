#include "rendezvous/server/job_keeper.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "spdlog/spdlog.h"

namespace muster::rendezvous {
namespace {

// A healthy disk takes milliseconds.
constexpr auto kPatienceAtEnd = std::chrono::seconds(2);

}  // namespace

JobKeeper::JobKeeper(std::unique_ptr<JobStore> store)
    : store_(std::move(store)), records_(store_->found()) {
  thread_ = std::thread([this] { Run(); });
}

JobKeeper::~JobKeeper() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  {
    base::MutexLock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + kPatienceAtEnd;
    while (!has_ended_) {
      if (changed_.wait_until(mutex_, end) != std::cv_status::timeout) continue;
      spdlog::error("the state directory does not answer; this process ends when its disk does");
      break;
    }
  }
  thread_.join();
}

JobRecord JobKeeper::RecordOf(const std::string& run_id) const {
  base::MutexLock lock(mutex_);
  auto found = records_.find(run_id);
  return found == records_.end() ? JobRecord() : found->second;
}

std::vector<std::string> JobKeeper::RunIds() const {
  base::MutexLock lock(mutex_);
  std::vector<std::string> run_ids;
  for (const auto& [run_id, record] : records_) run_ids.push_back(run_id);
  return run_ids;
}

void JobKeeper::Keep(const std::string& run_id, const JobRecord& record,
                     std::function<void()> kept) {
  Add(run_id, record, std::move(kept));
}

void JobKeeper::Forget(const std::string& run_id) { Add(run_id, std::nullopt, {}); }

void JobKeeper::Add(const std::string& run_id, std::optional<JobRecord> record,
                    std::function<void()> kept) {
  {
    base::MutexLock lock(mutex_);
    if (record) {
      records_[run_id] = *record;
    } else {
      records_.erase(run_id);
    }
    Change& change = pending_[run_id];
    change.record = std::move(record);
    if (kept) change.waiting.push_back(std::move(kept));
  }
  changed_.notify_all();
}

void JobKeeper::Run() {
  while (true) {
    std::map<std::string, Change> batch;
    {
      base::MutexLock lock(mutex_);
      while (pending_.empty() && !stopping_) changed_.wait(mutex_);
      if (pending_.empty()) {
        has_ended_ = true;
        changed_.notify_all();
        return;
      }
      batch.swap(pending_);
    }
    for (const auto& [run_id, change] : batch) Write(run_id, change);
  }
}

void JobKeeper::Write(const std::string& run_id, const Change& change) {
  const absl::Status status =
      change.record ? store_->Keep(run_id, *change.record) : store_->Forget(run_id);
  // The job goes on: what is kept also lives in the agents.
  const std::string problem(status.message());
  if (!status.ok() && problem != last_problem_) spdlog::error("job {}: {}", run_id, problem);
  last_problem_ = problem;
  for (const auto& kept : change.waiting) kept();
}

}  // namespace muster::rendezvous
