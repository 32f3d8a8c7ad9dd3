// A ProcessRunner for tests that starts nothing: it records what was asked for, and the test says
// what happens. Not thread-safe: the test's thread calls both sides, and the observer is called
// within ReportXxx().
#ifndef MUSTER_AGENT_PROCESS_FAKE_PROCESS_RUNNER_H_
#define MUSTER_AGENT_PROCESS_FAKE_PROCESS_RUNNER_H_

#include <map>
#include <string>
#include <vector>

#include "agent/process/process_runner.h"

namespace muster::agent {

class FakeProcessRunner : public ProcessRunner {
 public:
  struct SpawnCall {
    RoundId round;
    std::vector<WorkerCommand> workers;
  };
  struct StopCall {
    RoundId round;
    StopOptions options;
  };

  struct WorkerSignal {
    RoundId round;
    LocalRank local_rank;
    int signal = 0;
  };

  // `observer` must outlive the fake.
  explicit FakeProcessRunner(ProcessObserver* observer);

  void Preload(PreloadCommand command) override;
  // Closes the descriptors of `workers`, as the real one does.
  void Spawn(RoundId round, std::vector<WorkerCommand> workers) override;
  void Stop(RoundId round, StopOptions options) override;
  void Signal(int signal) override;
  void SignalWorker(RoundId round, LocalRank local_rank, int signal) override;
  void RenewDeadline(Instant deadline) override;

  // What the workers do. ReportAllStarted() gives the newest round's workers the pids 1000, 1001...
  void ReportAllStarted();
  void ReportFailedToStart(LocalRank local_rank, int error);
  void ReportExited(LocalRank local_rank, WorkerExit exit);
  // Every worker that still runs is reported as ended by SIGTERM (SIGKILL without a grace), then
  // the group as gone.
  void ReportStopped(std::vector<int64_t> unkillable = {});
  void ReportPreloadLost(std::string why);
  void ReportGuardianLost(std::string why);

  // Modules are empty if nothing was preloaded.
  const PreloadCommand& preload() const { return preload_; }
  const std::vector<SpawnCall>& spawns() const { return spawns_; }
  const std::vector<StopCall>& stops() const { return stops_; }
  const std::vector<int>& signals() const { return signals_; }
  const std::vector<WorkerSignal>& worker_signals() const { return worker_signals_; }
  Instant deadline() const { return deadline_; }
  // Pids by local rank.
  const std::map<LocalRank, int64_t>& running() const { return running_; }

 private:
  ProcessObserver* observer_;
  PreloadCommand preload_;
  std::vector<SpawnCall> spawns_;
  std::vector<StopCall> stops_;
  std::vector<int> signals_;
  std::vector<WorkerSignal> worker_signals_;
  Instant deadline_ = Instant::Never();
  std::map<LocalRank, int64_t> running_;
  int64_t next_pid_ = 1000;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_FAKE_PROCESS_RUNNER_H_
