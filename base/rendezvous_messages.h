// What the rendezvous says to an agent: the half of base/session_messages.h that comes down.
// Values; no behaviour.
#ifndef MUSTER_BASE_RENDEZVOUS_MESSAGES_H_
#define MUSTER_BASE_RENDEZVOUS_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster {

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
  // The round that runs without this node; 0 for none.
  RoundId running_round{};
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

// To rank 0's agent: a node wants to go, so name a step after which every rank saves.
struct CheckpointWanted {
  World world;
  friend bool operator==(const CheckpointWanted&, const CheckpointWanted&) = default;
};

// To every agent of the round: its workers save after this step. Rank 0 begins no later step before
// all have answered, so none can have passed it.
struct CheckpointAt {
  World world;
  int64_t step = 0;
  friend bool operator==(const CheckpointAt&, const CheckpointAt&) = default;
};

// To rank 0's agent: every node knows the step.
struct CheckpointAgreed {
  World world;
  int64_t step = 0;
  friend bool operator==(const CheckpointAgreed&, const CheckpointAgreed&) = default;
};

// A person sends this node away (`muster drain`). The agent only remembers it, for a rendezvous
// that restarts: JobEnded lets it go.
struct Drained {
  friend bool operator==(const Drained&, const Drained&) = default;
};

// The job is over, or is for this node. The last message; late joiners get it as their first.
struct JobEnded {
  Verdict verdict;
  friend bool operator==(const JobEnded&, const JobEnded&) = default;
};

using RendezvousMessage =
    std::variant<Attached, Refused, HeartbeatAck, Notice, StartRound, StopRound, SuccessNoted,
                 CommitGranted, CommitRefused, CommitNoted, JobEnded, CheckpointWanted,
                 CheckpointAt, CheckpointAgreed, Drained>;

}  // namespace muster

#endif  // MUSTER_BASE_RENDEZVOUS_MESSAGES_H_
