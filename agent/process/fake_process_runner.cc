#include "agent/process/fake_process_runner.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace muster::agent {

FakeProcessRunner::FakeProcessRunner(ProcessObserver* observer) : observer_(observer) {}

void FakeProcessRunner::Preload(PreloadCommand command) { preload_ = std::move(command); }

void FakeProcessRunner::Spawn(RoundId round, std::vector<WorkerCommand> workers) {
  for (const WorkerCommand& command : workers) {
    if (command.stdout_fd >= 0) close(command.stdout_fd);
    if (command.stderr_fd >= 0 && command.stderr_fd != command.stdout_fd) close(command.stderr_fd);
  }
  spawns_.push_back({round, std::move(workers)});
}

void FakeProcessRunner::Stop(RoundId round, StopOptions options) {
  stops_.push_back({round, options});
}

void FakeProcessRunner::Signal(int signal) { signals_.push_back(signal); }

void FakeProcessRunner::SignalWorker(RoundId round, LocalRank local_rank, int signal) {
  worker_signals_.push_back({round, local_rank, signal});
}

void FakeProcessRunner::RenewDeadline(Instant deadline) { deadline_ = deadline; }

void FakeProcessRunner::ReportAllStarted() {
  MUSTER_CHECK(!spawns_.empty());
  const SpawnCall call = spawns_.back();
  for (const WorkerCommand& command : call.workers) {
    running_[command.local_rank] = next_pid_;
    observer_->OnWorkerStarted(call.round, command.local_rank, next_pid_++);
  }
}

void FakeProcessRunner::ReportFailedToStart(LocalRank local_rank, int error) {
  MUSTER_CHECK(!spawns_.empty());
  observer_->OnWorkerFailedToStart(spawns_.back().round, local_rank, error);
}

void FakeProcessRunner::ReportExited(LocalRank local_rank, WorkerExit exit) {
  auto it = running_.find(local_rank);
  MUSTER_CHECK(it != running_.end());
  int64_t pid = it->second;
  running_.erase(it);
  observer_->OnWorkerExited(spawns_.back().round, local_rank, pid, exit, SystemClock().Now());
}

void FakeProcessRunner::ReportStopped(std::vector<int64_t> unkillable) {
  MUSTER_CHECK(!stops_.empty());
  const StopCall call = stops_.back();
  WorkerExit exit;
  exit.signal = call.options.grace > Duration::zero() ? SIGTERM : SIGKILL;
  while (!running_.empty()) ReportExited(running_.begin()->first, exit);
  observer_->OnGroupGone(call.round, std::move(unkillable));
}

void FakeProcessRunner::ReportPreloadLost(std::string why) {
  observer_->OnPreloadLost(std::move(why));
}

void FakeProcessRunner::ReportGuardianLost(std::string why) {
  running_.clear();
  observer_->OnGuardianLost(std::move(why));
}

}  // namespace muster::agent
