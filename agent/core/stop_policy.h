// How hard a group of workers is stopped: the cause decides the first signal and the time until
// SIGKILL. Pure functions.
#ifndef MUSTER_AGENT_CORE_STOP_POLICY_H_
#define MUSTER_AGENT_CORE_STOP_POLICY_H_

#include "base/instant.h"
#include "base/session_messages.h"

namespace muster::agent {

struct StopTimes {
  // --shutdown-timeout.
  Duration shutdown_timeout{0};
  // --lost-peer-grace.
  Duration lost_peer_grace{0};
};

struct StopPlan {
  int first_signal = 0;
  // From the first signal to SIGKILL.
  Duration grace{0};
  friend bool operator==(const StopPlan&, const StopPlan&) = default;
};

// A stop that the rendezvous, or a local worker's failure, asks for.
StopPlan PlanStop(StopCause cause, const StopTimes& times);

// A stop that the user asks for by a signal; `is_repeated` from the second one on.
StopPlan PlanUserStop(int signal, bool is_repeated, const StopTimes& times);

// Workers that all exited 0 may have left processes behind, such as an upload: those get the normal
// grace.
StopPlan PlanSweepAfterSuccess(const StopTimes& times);

// Whether `next` has to be carried out although `current` is under way.
bool IsHarder(const StopPlan& next, const StopPlan& current);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_STOP_POLICY_H_
