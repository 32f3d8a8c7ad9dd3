// What can happen to an agent: the events that its machine takes (agent_machine.h). Values; no
// behaviour.
#ifndef MUSTER_AGENT_CORE_AGENT_EVENTS_H_
#define MUSTER_AGENT_CORE_AGENT_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "agent/core/hang_events.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::agent {

struct RendezvousConnected {
  // The endpoint is one address, and the rendezvous there listens at it as its own: not behind a
  // virtual address, which also refuses connections while the rendezvous lives.
  bool to_own_address = false;
};

struct RendezvousDisconnected {
  // One phrase for people: "connection refused by 10.0.0.1:29400".
  std::string why;
  // Whoever answers there is no muster rendezvous, or the name doesn't resolve: trying again won't
  // help unless contact existed before.
  bool is_hopeless = false;
};

// The answer to ProbeEndpoint, exactly one for each. Refused (ECONNREFUSED): nobody listens there.
struct EndpointProbed {
  bool is_refused = false;
};

struct RendezvousSaid {
  RendezvousMessage message;
};

struct WorkerStarted {
  RoundId round;
  LocalRank local_rank;
  int64_t pid = 0;
};

// A local worker said Hello on the channel of the SDK. May be said more than once.
struct WorkerSaidHello {
  RoundId round;
  LocalRank local_rank;
};

// A worker ended, or never started (failure.failed_to_start). The shell has filled in all that
// `failure` can hold when the exit isn't a success, but its `age`.
struct WorkerEnded {
  RoundId round;
  LocalRank local_rank;
  WorkerFailure failure;
  // When it ended; the event comes later, with what was found out meanwhile. Absent: now.
  std::optional<Instant> at = std::nullopt;
};

// No process of the round is left on this node, but those that had to be given up on.
struct GroupGone {
  RoundId round;
  // For people: "4711 (python3), 4712 (sh)"; empty: none.
  std::string unkillable{};
};

// A local worker reported a durable shard, or a published checkpoint (CommitDone).
struct WorkerReportedShard {
  ShardReport report;
};
struct WorkerCommitted {
  CommitDone commit;
};

// A local worker completed a step.
struct WorkerReportedStep {
  World world;
  LocalRank local_rank;
  int64_t step = 0;
  // Its program asks whether to save after each.
  bool can_save = false;
};

// Rank 0's worker, asked by AskForCheckpoint, saves after this step and waits before it.
struct WorkerAnnouncedCheckpoint {
  World world;
  int64_t step = 0;
};

// A local worker will save after this step.
struct WorkerKnowsCheckpoint {
  World world;
  LocalRank local_rank;
  int64_t step = 0;
};

// SIGINT, SIGTERM, SIGHUP or SIGQUIT to `muster run`, or a notice of preemption, which is as good
// as SIGTERM. SIGTERM lets workers that can save agree on a last checkpoint. A second one shortens
// the grace to zero.
struct StopRequested {
  int signal = 0;
  // What announced it, if it was no such signal: "preemption notice /run/preempted".
  std::string notice{};
};

struct GuardianLost {
  std::string why;
};

// The loop's timer: at or after NextWakeup().
struct TimePassed {};

using AgentEvent = std::variant<RendezvousConnected, RendezvousDisconnected, EndpointProbed,
                                RendezvousSaid, WorkerStarted, WorkerSaidHello, WorkerEnded,
                                GroupGone, WorkerReportedShard, WorkerCommitted, WorkerReportedStep,
                                WorkerAnswered, WorkerLeft, WorkerAnnouncedCheckpoint,
                                WorkerKnowsCheckpoint, StopRequested, GuardianLost, TimePassed>;

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_AGENT_EVENTS_H_
