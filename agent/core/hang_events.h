// What the agent's machine is told, and asks for, about workers that may hang: part of the events
// and effects of agent_machine.h. Values.
#ifndef MUSTER_AGENT_CORE_HANG_EVENTS_H_
#define MUSTER_AGENT_CORE_HANG_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster::agent {

// ---- events --------------------------------------------------------------------------------

// A local worker answered a ping; it closed its channel.
struct WorkerAnswered {
  World world;
  LocalRank local_rank;
  // None: its answer came from a process that makes no steps, so it tells nothing of them.
  std::optional<Activity> activity = std::nullopt;
};
struct WorkerLeft {
  World world;
  LocalRank local_rank;
};

// ---- effects -------------------------------------------------------------------------------

// Ask every local worker that uses the SDK for a sign of life.
struct PingWorkers {
  World world;
};

// This worker hangs: keep what can be known of it (its stacks), within kHungLookPatience, and come
// back with WorkerEnded{failure.hung}, on which KillWorker follows.
struct LookAtHungWorker {
  RoundId round;
  LocalRank local_rank;
  int64_t last_step = -1;
  // WorkerFailure::only_waited and evidence.
  bool only_waited = false;
  std::string evidence;
};

// Its stacks are asked for and written.
inline constexpr Duration kHungLookPatience = std::chrono::seconds(3);

// SIGKILL to one worker.
struct KillWorker {
  RoundId round;
  LocalRank local_rank;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_HANG_EVENTS_H_
