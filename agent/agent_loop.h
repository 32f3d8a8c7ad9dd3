// Runs the agent's machine: one thread takes what the rendezvous, the workers' processes, the
// workers themselves and the user do, one at a time, feeds the machine and carries out its effects.
// Holds no rules. Made and driven by Agent (agent/agent.h), which owns the parts.
//
// Run() is to be called once, by one thread. The observers' methods, RequestStop() and
// ForwardSignal() only enqueue and may be called from any thread, before and after Run() too.
#ifndef MUSTER_AGENT_AGENT_LOOP_H_
#define MUSTER_AGENT_AGENT_LOOP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_settings.h"
#include "agent/core/agent_machine.h"
#include "agent/log_layout.h"
#include "agent/process/log_pump.h"
#include "agent/process/process_runner.h"
#include "agent/server/worker_service.h"
#include "agent/task_queue.h"
#include "base/clock.h"
#include "rendezvous/client/rendezvous_client.h"

namespace muster::agent {

class AgentLoop : public rendezvous::SessionObserver,
                  public ProcessObserver,
                  public WorkerServiceObserver {
 public:
  // All must outlive Run().
  struct Parts {
    rendezvous::RendezvousClient* client = nullptr;
    ProcessRunner* runner = nullptr;
    WorkerService* service = nullptr;
    LogPump* pump = nullptr;
    const LogLayout* layout = nullptr;
  };

  // Both must outlive the loop.
  AgentLoop(const AgentSettings* settings, const Clock* clock);

  // Until the machine ends.
  Verdict Run(Parts parts);

  // After Run(): the error file of the first worker of the last round on this node that left one.
  const std::string& first_error_file() const { return first_error_file_; }

  void RequestStop(int signal);
  void ForwardSignal(int signal);

  void OnConnected(uint64_t connection) override;
  void OnMessage(uint64_t connection, RendezvousMessage message) override;
  void OnDisconnected(uint64_t connection, absl::Status why) override;
  void OnWorkerStarted(RoundId round, LocalRank local_rank, int64_t pid) override;
  void OnWorkerFailedToStart(RoundId round, LocalRank local_rank, int error) override;
  void OnWorkerExited(RoundId round, LocalRank local_rank, int64_t pid, WorkerExit exit) override;
  void OnGroupGone(RoundId round, std::vector<int64_t> unkillable) override;
  void OnGuardianLost(std::string why) override;
  void OnShardReported(ShardReport report) override;
  void OnCommitPublished(CommitDone done) override;

 private:
  // All below: on Run()'s thread.
  void Step(const AgentEvent& event);
  void PerformAll(std::vector<AgentEffect> effects);
  void Perform(const Connect&);
  void Perform(const Disconnect&);
  void Perform(const SendToRendezvous& send);
  void Perform(const SpawnGroup& spawn);
  void Perform(const StopGroup& stop);
  void Perform(const AbortCollectives& abort);
  void Perform(const RenewDeadline& renew);
  void Perform(const AnswerCommit& answer);
  void Perform(const Show& show);
  void Perform(const End& end);

  // What a person needs to know about a worker that didn't end well.
  WorkerFailure FailureOf(LocalRank local_rank, int64_t pid, WorkerExit exit);
  WorkerFailure FailureToStart(LocalRank local_rank, int error);
  bool RefuseWithoutPipes(const std::vector<WorkerPipes>& pipes);
  void FinishOutput(RoundId round);
  WorkerOutput OutputOf(LocalRank local_rank, Rank rank) const;
  StreamChoice ChoiceOf(LocalRank local_rank) const;

  const AgentSettings& settings_;
  const Clock& clock_;
  TaskQueue tasks_;
  Parts parts_;
  std::optional<AgentMachine> machine_;
  // The stream that counts; what others report is stale.
  uint64_t connection_ = 0;
  // The newest round that was spawned.
  StartRound place_;
  std::string first_error_file_;
  std::optional<Verdict> verdict_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_AGENT_LOOP_H_
