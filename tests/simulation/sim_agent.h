// One life of an agent on one machine: the real AgentMachine, with a small shell around it and a
// model of its guardian and workers. It can be killed, frozen and cut from power. Owned by
// SimWorld; one thread.
#ifndef MUSTER_TESTS_SIMULATION_SIM_AGENT_H_
#define MUSTER_TESTS_SIMULATION_SIM_AGENT_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent_machine.h"
#include "tests/simulation/sim_parts.h"

namespace muster::simulation {

// What an agent has been told of the job; a rendezvous that it attaches to may not fall behind it.
struct Knowledge {
  RoundId round{};
  int attempt = -1;
  int restarts_charged = 0;
  std::optional<Commit> commit{};
};

class SimAgent {
 public:
  struct Options {
    AgentIndex index = 0;
    HostIndex host = 0;
    NodePlan node{};
    // Difference of this machine's clock from the simulation's.
    Duration clock_offset{0};
  };

  // `parts` must outlive the agent.
  SimAgent(SimParts& parts, Options options);
  void Start();

  const NodePlan& node() const { return options_.node; }
  HostIndex host() const { return options_.host; }
  const std::string& address() const { return address_; }
  // The process runs: not killed, not at its end.
  bool is_alive() const { return is_alive_; }
  bool is_frozen() const { return is_frozen_; }
  bool guardian_is_alive() const { return guardian_is_alive_; }
  Incarnation incarnation() const { return machine_.incarnation(); }
  // Of its workers, if any runs; -1.
  WorldIndex world() const;
  // Whether its workers may outlive the lease though others may have gone on without them.
  bool may_run_beside() const;
  // When the rendezvous may give its place away for its silence.
  Instant lease_end() const;
  // What it ended with, by itself.
  const std::optional<Verdict>& ended_with() const { return ended_with_; }
  // The last JobEnded it was told.
  const std::optional<Verdict>& told_verdict() const { return told_verdict_; }
  // What it knew when it sent its Attach with this candidate port.
  const Knowledge& KnowledgeAt(uint16_t candidate_port) const {
    return attached_with_[candidate_port];
  }

  // From the network; those about a stream that was dropped are ignored.
  void Connected(StreamIndex stream);
  void Disconnected(StreamIndex stream, const char* why);
  void Said(StreamIndex stream, RendezvousMessage message);

  // From its workers.
  void ReportShard(const ShardReport& report);
  void ReportPublished(const CommitDone& done);

  // From its workers (sim_agent_saving.cc). In some plans they save when they are asked.
  void ReportStep(const World& world, LocalRank local_rank, int64_t step);
  void AnnounceCheckpoint(const World& world, int64_t step);
  void KnowCheckpoint(const World& world, LocalRank local_rank, int64_t step);

  // Faults. Each needs a living process.
  void Kill();
  void KillGuardian();
  void Freeze();
  void Thaw();
  void PowerOff();
  void StopBySignal(int signal);
  // A running worker ends by itself; false if none runs.
  bool EndWorker(uint32_t target, WorkerExit exit, bool is_genuine);
  void LetNextWorkerNotStart() { next_cannot_start_ = true; }
  // The worker with this rank comes to its end and exits 0, if it runs.
  void FinishWorker(LocalRank local_rank, Duration after);
  // It dies of a lost peer, with exit code 1.
  void FailWorkerSoon(LocalRank local_rank, Duration after);
  bool WorkerRuns(LocalRank local_rank) const;

  // kAgentTimer, kAgentReplays, kGuardian..., kWorker..., kGroupSwept.
  void Handle(const Due& due);

 private:
  enum class WorkerState { kStarting, kRunning, kEnded };
  struct Worker {
    WorkerState state = WorkerState::kStarting;
    Instant dies_at = Instant::Never();
    WorkerExit exit;
    bool is_genuine = false;
    bool cannot_start = false;
  };
  struct Incoming {
    agent::AgentEvent event;
    // -1: not about a stream.
    StreamIndex stream = -1;
  };

  Instant LocalNow() const { return parts_.queue.now() + options_.clock_offset; }
  void Take(agent::AgentEvent event, StreamIndex stream = -1);
  void Drain();
  void Step(const agent::AgentEvent& event);
  void NoteAcknowledged(const agent::AgentEvent& event);
  // What the machine was told of the job.
  void Learn(const agent::AgentEvent& event);
  void WatchTimer();
  void Tell(const std::string& text);
  void TellLocal(const agent::AgentEvent& event);

  void Perform(agent::Connect&);
  void Perform(agent::Disconnect&);
  void Perform(agent::ProbeEndpoint&);
  void Perform(agent::SendToRendezvous& effect);
  void Perform(agent::SpawnGroup& effect);
  void Perform(agent::StopGroup& effect);
  // Hangs aren't simulated: without a timeout nothing of this comes.
  void Perform(agent::PingWorkers&) {}
  void Perform(agent::LookAtHungWorker&) {}
  void Perform(agent::KillWorker&) {}
  void Perform(agent::AbortCollectives&) {}
  void Perform(agent::RenewDeadline& effect);
  void Perform(agent::AnswerCommit& effect);
  void Perform(agent::AskForCheckpoint& effect);
  void Perform(agent::TellCheckpoint& effect);
  void Perform(agent::AgreeOnCheckpoint& effect);
  void Perform(agent::Show& effect);
  void Perform(agent::End& effect);

  // The guardian and the workers.
  int GroupCode(int local_rank) const { return group_number_ * 64 + local_rank; }
  void StartWorker(int local_rank);
  void KillWorkers(Duration within);
  void DieAt(int local_rank, Duration after, WorkerExit exit);
  void WorkerDied(int local_rank);
  void CheckDeadline();
  void SweepIfEmpty();
  LiveWorkers& live() { return parts_.worlds.live[options_.index]; }

  SimParts& parts_;
  const Options options_;
  const std::string address_;
  agent::AgentMachine machine_;
  std::deque<Incoming> inbox_;
  Instant timer_at_ = Instant::Never();
  std::optional<Verdict> ended_with_;
  std::optional<Verdict> told_verdict_;

  // To judge it by.
  Knowledge knowledge_;
  std::vector<Knowledge> attached_with_;
  std::deque<std::pair<uint64_t, Instant>> heartbeats_;
  Instant attach_sent_at_;
  std::optional<Instant> acknowledged_;
  // When the probe under way began, and the last one that was refused.
  Instant probe_began_;
  std::optional<Instant> nobody_there_at_;
  std::vector<AgentMessage> kept_;

  // The guardian.
  Instant deadline_ = Instant::Never();
  Instant deadline_check_ = Instant::Never();
  std::optional<StartRound> place_;
  std::vector<Worker> workers_;
  int group_number_ = 0;

  StreamIndex stream_ = -1;
  bool attach_sent_ = false;
  bool is_alive_ = true;
  bool is_frozen_ = false;
  bool is_draining_ = false;
  bool guardian_is_alive_ = true;
  // Of the group.
  bool is_stopping_ = false;
  bool is_sweeping_ = false;
  bool next_cannot_start_ = false;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_SIM_AGENT_H_
