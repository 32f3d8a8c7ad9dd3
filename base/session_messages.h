// What an agent and the rendezvous say to each other, as plain structs: the vocabulary that the
// cores on both sides share. proto/rendezvous.proto is the same on the wire, and
// proto/session_convert.h the only place that turns one into the other. Values; no behaviour.
#ifndef MUSTER_BASE_SESSION_MESSAGES_H_
#define MUSTER_BASE_SESSION_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster {

// ---- agent -> rendezvous -------------------------------------------------------------------

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

  friend bool operator==(const Attach&, const Attach&) = default;
};

// Renews the lease (as any message does).
struct Heartbeat {
  uint64_t sequence = 0;
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
  friend bool operator==(const Leave&, const Leave&) = default;
};

using AgentMessage = std::variant<Attach, Heartbeat, WorkerFailed, NodeSucceeded, StopDone,
                                  ShardReport, CommitDone, Leave>;

// ---- rendezvous -> agent -------------------------------------------------------------------

// The agent is a member of the job's room, as a participant or a spare.
struct Attached {
  // The rendezvous counts an agent as lost this long after its last message.
  Duration lease{0};
  // How long a job without contact is kept together.
  Duration reconnect_timeout{0};
  friend bool operator==(const Attached&, const Attached&) = default;
};

enum class RefusalCode {
  // Other terms than the job's (nnodes, version, ...), or a node rank taken: exit 78.
  kDisagrees = 1,
  // Another incarnation took this agent's place, or its world is over: kill the workers, then
  // attach as a new incarnation.
  kSuperseded = 2,
  // Exit 77.
  kNotAuthorised = 3,
};

struct Refused {
  RefusalCode code = RefusalCode::kDisagrees;
  // One sentence that names both values and what to do.
  std::string message;
  friend bool operator==(const Refused&, const Refused&) = default;
};

struct HeartbeatAck {
  uint64_t sequence = 0;
  friend bool operator==(const HeartbeatAck&, const HeartbeatAck&) = default;
};

// Something a waiting person wants to know: "waiting for 1 more node (2 of 3 are here)".
struct Notice {
  std::string text;
  friend bool operator==(const Notice&, const Notice&) = default;
};

// Start workers. The agent is told its own place, never the whole table.
struct StartRound {
  World world;
  RoundKey key;
  GroupRank group_rank;
  int group_world_size = 0;
  Rank first_rank;
  int world_size = 0;
  // Of group rank 0's node.
  std::string master_address;
  uint16_t master_port = 0;
  // Rounds formed so far, minus one: the same number on every node.
  int attempt = 0;
  int restarts_charged = 0;
  std::optional<Commit> resume;
  friend bool operator==(const StartRound&, const StartRound&) = default;
};

enum class StopCause {
  // A worker failed somewhere: SIGTERM, then the shutdown timeout.
  kWorkerFailed = 1,
  // A node was lost: its peers can't make progress, so the grace is --lost-peer-grace.
  kPeerLost = 2,
  // The membership changes in order (scale-up, leave): as kWorkerFailed.
  kMembership = 3,
  // The job ends.
  kJobEnding = 4,
  // This world was replaced by another one: kill at once.
  kSuperseded = 5,
};

// Stop the workers of this world, then answer StopDone.
struct StopRound {
  World world;
  StopCause cause = StopCause::kMembership;
  // One sentence for logs and for PeerLost in the workers.
  std::string reason;
  // First lost or failed rank, for the workers' PeerLost; -1 if no rank is to blame.
  Rank culprit{-1};
  friend bool operator==(const StopRound&, const StopRound&) = default;
};

// NodeSucceeded was noted: the loss of this node costs nothing from now on.
struct SuccessNoted {
  World world;
  friend bool operator==(const SuccessNoted&, const SuccessNoted&) = default;
};

// To rank 0's agent: publish this checkpoint. Void when the round ends.
struct CommitGranted {
  World world;
  Commit commit;
  friend bool operator==(const CommitGranted&, const CommitGranted&) = default;
};

// To an agent that reported a shard or a commit of a world that isn't the current one.
struct CommitRefused {
  World world;
  Commit commit;
  std::string reason;
  friend bool operator==(const CommitRefused&, const CommitRefused&) = default;
};

// The newest commit changed; every agent remembers it for a rendezvous that restarts.
struct CommitNoted {
  World world;
  Commit commit;
  friend bool operator==(const CommitNoted&, const CommitNoted&) = default;
};

// The job is over. The last message; late joiners get it as their first.
struct JobEnded {
  Verdict verdict;
  friend bool operator==(const JobEnded&, const JobEnded&) = default;
};

using RendezvousMessage =
    std::variant<Attached, Refused, HeartbeatAck, Notice, StartRound, StopRound, SuccessNoted,
                 CommitGranted, CommitRefused, CommitNoted, JobEnded>;

// ---- key-value table -----------------------------------------------------------------------

// Names the worker's round in every key-value call; a call for another round is refused.
struct RoundScope {
  std::string run_id;
  Incarnation incarnation;
  World world;
  friend bool operator==(const RoundScope&, const RoundScope&) = default;
};

}  // namespace muster

#endif  // MUSTER_BASE_SESSION_MESSAGES_H_
