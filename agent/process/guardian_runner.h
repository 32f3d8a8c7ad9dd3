// The real ProcessRunner: passes orders to the guardian and its reports to the observer. Owned by
// the agent. Thread-safe; one thread of its own, on which the observer is called. No call blocks on
// the guardian.
#ifndef MUSTER_AGENT_PROCESS_GUARDIAN_RUNNER_H_
#define MUSTER_AGENT_PROCESS_GUARDIAN_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "agent/guardian/guardian.h"
#include "agent/process/process_runner.h"

namespace muster::agent {

class GuardianRunner : public ProcessRunner {
 public:
  // Takes over the link. `observer` must outlive the runner.
  GuardianRunner(GuardianLink link, ProcessObserver* observer);
  // Ends the guardian, which kills what is left and removes the folder, and waits for that (at most
  // 15 s). No call of the observer comes afterwards.
  ~GuardianRunner() override;

  void Preload(PreloadCommand command) override;
  void Spawn(RoundId round, std::vector<WorkerCommand> workers) override;
  void Stop(RoundId round, StopOptions options) override;
  void Signal(int signal) override;
  void SignalWorker(RoundId round, LocalRank local_rank, int signal) override;
  void RenewDeadline(Instant deadline) override;

  // A private temporary folder of this process, removed by the guardian with all that is in it when
  // it ends, also after a SIGKILL of this process. An absolute path; a later call replaces it.
  void RemoveAtEnd(std::string folder);

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_GUARDIAN_RUNNER_H_
