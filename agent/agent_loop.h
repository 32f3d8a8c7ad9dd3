// Runs the agent's machine: one thread takes what the rendezvous, the workers' processes, the
// workers themselves and the user do, one at a time, feeds the machine and carries out its effects.
// Holds no rules. Made and driven by Agent (agent/agent.h), which owns the parts.
//
// The thread never waits for a disk or a console, or it would miss its lease: what touches files
// runs on a thread of its own, and what it finds comes back as a task.
//
// Run() is to be called once, by one thread. The observers' methods, RequestStop(),
// ForwardSignal() and Say() only enqueue and may be called from any thread, before and after Run()
// too.
#ifndef MUSTER_AGENT_AGENT_LOOP_H_
#define MUSTER_AGENT_AGENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_settings.h"
#include "agent/core/agent_machine.h"
#include "agent/core/worker_environment.h"
#include "agent/hung_worker.h"
#include "agent/log_layout.h"
#include "agent/memory_watch.h"
#include "agent/ordered_events.h"
#include "agent/process/file_thread.h"
#include "agent/process/log_pump.h"
#include "agent/process/process_runner.h"
#include "agent/server/worker_service.h"
#include "agent/task_queue.h"
#include "agent/torch_store/store_host.h"
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

  // Until the machine ends and the last round's output is shown, or given up on.
  Verdict Run(Parts parts);

  // After Run(): the error record of the first worker of the last round on this node that left one.
  const std::string& first_error() const { return first_error_; }

  // After Run(): of the newest round that was spawned; round 0: none was.
  const StartRound& last_place() const { return place_; }

  // `notice`: what announced it, where that was no signal to `muster run` ("/run/preempted").
  void RequestStop(int signal, std::string notice = "");
  void ForwardSignal(int signal);
  void Say(std::string line);

  void OnConnected(uint64_t connection) override;
  void OnMessage(uint64_t connection, RendezvousMessage message) override;
  void OnDisconnected(uint64_t connection, absl::Status why) override;
  void OnWorkerStarted(RoundId round, LocalRank local_rank, int64_t pid) override;
  void OnWorkerFailedToStart(RoundId round, LocalRank local_rank, int error) override;
  void OnWorkerExited(RoundId round, LocalRank local_rank, int64_t pid, WorkerExit exit,
                      Instant at) override;
  void OnLeftBehind(RoundId round, std::vector<int64_t> pids, Duration grace) override;
  void OnGroupGone(RoundId round, std::vector<int64_t> unkillable) override;
  void OnPreloadLost(std::string why) override;
  void OnGuardianLost(std::string why) override;
  void OnShardReported(ShardReport report) override;
  void OnCommitPublished(CommitDone done) override;
  void OnWorkerAnswered(const World& world, LocalRank local_rank,
                        const std::optional<Activity>& activity) override;
  void OnWorkerLeft(const World& world, LocalRank local_rank) override;
  void OnStepReported(const World& world, LocalRank local_rank,
                      worker_channel::StepDone done) override;
  void OnCheckpointAnnounced(const World& world, int64_t step) override;
  void OnCheckpointKnown(const World& world, LocalRank local_rank, int64_t step) override;
  void OnHello(RoundId round, LocalRank local_rank) override;

 private:
  // All below: on Run()'s thread.
  void Step(const AgentEvent& event);
  void StepWhatIsReady();
  Duration UntilNextWakeup() const;
  void WaitForOutput();
  void PerformAll(const std::vector<AgentEffect>& effects);
  void Perform(const Connect&);
  void Perform(const Disconnect&);
  void Perform(const ProbeEndpoint&);
  void Perform(const SendToRendezvous& send);
  void Perform(const SpawnGroup& spawn);
  void Perform(const StopGroup& stop);
  void Perform(const PingWorkers& ping);
  void Perform(const LookAtHungWorker& look);
  void Perform(const KillWorker& kill);
  void Perform(const AbortCollectives& abort);
  void Perform(const RenewDeadline& renew);
  void Perform(const AnswerCommit& answer);
  void Perform(const AskForCheckpoint& ask);
  void Perform(const TellCheckpoint& tell);
  void Perform(const AgreeOnCheckpoint& agree);
  void Perform(const Show& show);
  void Perform(const End& end);

  // What a person needs to know about a worker that didn't end well: known at once, and looked up.
  WorkerFailure FailureOf(LocalRank local_rank, int64_t pid, WorkerExit exit);
  WorkerFailure FailureToStart(LocalRank local_rank, int error);
  bool RefuseWithoutPipes(const std::vector<WorkerPipes>& pipes);
  bool RefuseWithoutStore(const std::vector<WorkerPipes>& pipes);
  // MASTER_PORT, if this node becomes group rank 0.
  uint16_t CandidatePort();
  void LookUpWhy(WorkerEnded ended);
  void TakeHungLook(uint64_t number, const HungLook& look);
  void KeepStacks(uint64_t number, const std::string& stacks);
  void LookUpCore(uint64_t number, const WorkerFailure& failure);
  // The same of a worker that didn't start.
  void LookUpFlaw(WorkerEnded ended, int error);
  std::string program() const { return settings_.argv.empty() ? "" : settings_.argv[0]; }
  void FinishOutput(RoundId round);
  WorkerService::Round ServiceRound() const;
  WorkerSurroundings Surroundings() const;
  // Has the modules of --preload imported while the nodes meet.
  void Preload();
  std::vector<WorkerCommand> Commands(const std::vector<WorkerOutput>& outputs) const;
  // Starts the workers whose folders are there, or late.
  void ReleaseSpawn();
  WorkerOutput OutputOf(LocalRank local_rank, Rank rank) const;
  StreamChoice ChoiceOf(LocalRank local_rank) const;

  struct PendingSpawn {
    RoundId round;
    std::vector<WorkerCommand> commands;
    Instant deadline;
  };

  const AgentSettings& settings_;
  const Clock& clock_;
  // Shared with the thread for files, which may be stuck for longer than the loop lives. Its tasks
  // run on Run()'s thread alone.
  const std::shared_ptr<TaskQueue> tasks_ = std::make_shared<TaskQueue>();
  // The stream of which a message was dropped.
  std::atomic<uint64_t> flooded_connection_{0};
  Parts parts_;
  std::optional<AgentMachine> machine_;
  // The stream that counts; what others report is stale.
  uint64_t connection_ = 0;
  // Where other nodes reach this one, as told last.
  std::string address_;
  // The newest round that was spawned, and when, in seconds since 1970.
  StartRound place_;
  int64_t spawned_at_s_ = 0;
  // Where the agent serves PyTorch's store at a port of its own.
  std::optional<torch_store::StoreHost> store_;
  MemoryWatch memory_;
  // Of the round's workers that run.
  std::map<LocalRank, int64_t> pids_;
  std::string first_error_;
  std::optional<Verdict> verdict_;
  // Ends of workers whose last words are looked up, and what must be told after them.
  OrderedEvents ordered_;
  std::optional<PendingSpawn> pending_spawn_;
  // What killed agents left in the temporary folder has been looked for.
  bool has_tidied_ = false;
  // Rounds whose output is still being shown.
  int unfinished_rounds_ = 0;
  FileThread files_;
  // Looks at hung workers, on a thread of its own as that may block; made when the first hangs.
  std::optional<FileThread> looks_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_AGENT_LOOP_H_
