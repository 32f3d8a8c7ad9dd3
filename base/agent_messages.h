// What an agent says to the rendezvous: the half of base/session_messages.h that goes up. Values;
// no behaviour.
#ifndef MUSTER_BASE_AGENT_MESSAGES_H_
#define MUSTER_BASE_AGENT_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/ids.h"
#include "base/job_types.h"

namespace muster {

// What an agent that re-attaches still runs: a restarted rendezvous rebuilds the job from these.
struct RunningWorld {
  World world;
  GroupRank group_rank;
  int group_world_size = 0;
  Rank first_rank;
  int world_size = 0;
  int restarts_charged = 0;
  std::optional<Commit> last_commit;
  // All of this node's workers have exited 0 and wait for the others.
  bool succeeded = false;
  // At least one of them has.
  bool worker_succeeded = false;

  friend bool operator==(const RunningWorld&, const RunningWorld&) = default;
};

// First message on every stream. A retry with the same incarnation is a re-attach and safe.
struct Attach {
  Incarnation incarnation;
  std::string node_name;
  // Where other nodes reach this node's workers: an IP address or a name.
  std::string address;
  int worker_count = 1;
  // --node-rank; required when terms.is_static.
  std::optional<int> node_rank;
  JobTerms terms;
  // A port that was free on this node a moment ago: MASTER_PORT if the node becomes group rank 0.
  // Filled in by the agent's shell when the message is sent.
  uint16_t candidate_port = 0;
  // Absent: no worker of any round runs here.
  std::optional<RunningWorld> running;
  // Highest round this agent has seen, 0 for none: the next round is above it.
  RoundId highest_round;
  // What this agent last heard of the job (StartRound, CommitNoted), running or not: a rendezvous
  // that restarts while no worker runs would forget the budget and the checkpoint otherwise.
  int restarts_charged = 0;
  std::optional<Commit> last_commit;
  // The round that ran without this node, as it was last told; 0 for none: a rendezvous that comes
  // back without a memory may hear of it from a spare first.
  RoundId round_elsewhere;
  // This process was in the job's room before, on an earlier stream.
  bool was_attached = false;
  // It was told Drained: a rendezvous that restarts lets it go nevertheless.
  bool is_drained = false;
  // This process hosts the rendezvous: it stays when its workers have left, until the job ends.
  bool hosts_rendezvous = false;
  // Filled in by the agent's shell when the message is sent.
  NodeFacts facts;

  friend bool operator==(const Attach&, const Attach&) = default;
};

// Renews the lease (as any message does).
struct Heartbeat {
  uint64_t sequence = 0;
  // The lowest of the last steps that this node's workers reported through the SDK; -1: one of them
  // has reported none, or there are no workers.
  int64_t step = -1;
  // All of this node's workers ask at each step whether to save after it: a checkpoint that all
  // ranks agree on can be asked of them.
  bool can_save = false;
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// A worker of this node failed. The agent is already stopping the others on its node.
struct WorkerFailed {
  World world;
  WorkerFailure failure;
  friend bool operator==(const WorkerFailed&, const WorkerFailed&) = default;
};

// All of this node's workers exited 0.
struct NodeSucceeded {
  World world;
  friend bool operator==(const NodeSucceeded&, const NodeSucceeded&) = default;
};

// Acknowledges a StopRound: no worker of that world is left on this node; ready for the next round.
struct StopDone {
  World world;
  uint16_t candidate_port = 0;
  // The highest step that an SDK worker of this node completed in that world; -1: none reported.
  int64_t last_step = -1;
  friend bool operator==(const StopDone&, const StopDone&) = default;
};

// This rank's shard of the checkpoint is durable. When `shard_count` ranks have said so, the
// rendezvous grants the commit to rank 0's agent. Safe to retry.
struct ShardReport {
  World world;
  Rank rank;
  int shard_count = 1;
  Commit commit;
  friend bool operator==(const ShardReport&, const ShardReport&) = default;
};

// Rank 0 has published the checkpoint it was granted; from now on it counts. Safe to retry.
struct CommitDone {
  World world;
  Commit commit;
  friend bool operator==(const CommitDone&, const CommitDone&) = default;
};

// The agent goes, in order; none of its workers runs any more.
struct Leave {
  // For people: "stopped by SIGINT".
  std::string reason;
  // Not in order: the agent can't go on, and another one may come in its place.
  bool is_lost = false;
  friend bool operator==(const Leave&, const Leave&) = default;
};

// The first worker of this node exited 0: from now on nobody is taken in by stopping this world.
// Safe to retry.
struct WorkerSucceeded {
  World world;
  friend bool operator==(const WorkerSucceeded&, const WorkerSucceeded&) = default;
};

// This node wants to go (SIGTERM, a preemption notice) while its workers still run, and they can
// take a checkpoint first. JobEnded lets it go; it may Leave before that. Safe to retry.
struct LeaveRequest {
  World world;
  // For people: "preempted (SIGTERM)".
  std::string reason;
  friend bool operator==(const LeaveRequest&, const LeaveRequest&) = default;
};

// From rank 0's agent, the answer to CheckpointWanted: rank 0 will save after this step, and waits
// before it until CheckpointAgreed. Safe to retry.
struct CheckpointStep {
  World world;
  int64_t step = 0;
  friend bool operator==(const CheckpointStep&, const CheckpointStep&) = default;
};

// This node's workers know that they save after this step. Answers CheckpointAt.
struct CheckpointStepKnown {
  World world;
  int64_t step = 0;
  friend bool operator==(const CheckpointStepKnown&, const CheckpointStepKnown&) = default;
};

using AgentMessage =
    std::variant<Attach, Heartbeat, WorkerFailed, NodeSucceeded, StopDone, ShardReport, CommitDone,
                 Leave, WorkerSucceeded, LeaveRequest, CheckpointStep, CheckpointStepKnown>;

}  // namespace muster

#endif  // MUSTER_BASE_AGENT_MESSAGES_H_
