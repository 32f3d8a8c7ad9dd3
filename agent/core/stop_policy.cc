#include "agent/core/stop_policy.h"

#include <csignal>

namespace muster::agent {
namespace {

constexpr StopPlan kKillNow{SIGKILL, Duration(0)};

StopPlan Politely(int signal, Duration grace) {
  return grace > Duration(0) ? StopPlan{signal, grace} : kKillNow;
}

}  // namespace

StopPlan PlanStop(StopCause cause, const StopTimes& times) {
  switch (cause) {
    case StopCause::kWorkerFailed:
    case StopCause::kMembership:
    case StopCause::kJobEnding:
      return Politely(SIGTERM, times.shutdown_timeout);
    case StopCause::kPeerLost:
      return Politely(SIGTERM, times.lost_peer_grace);
    case StopCause::kSuperseded:
      return kKillNow;
  }
  // A cause of a newer version: the polite way is never wrong.
  return Politely(SIGTERM, times.shutdown_timeout);
}

StopPlan PlanUserStop(int signal, bool is_repeated, const StopTimes& times) {
  return is_repeated ? kKillNow : Politely(signal, times.shutdown_timeout);
}

StopPlan PlanSweepAfterSuccess(const StopTimes& times) {
  return Politely(SIGTERM, times.shutdown_timeout);
}

bool IsHarder(const StopPlan& next, const StopPlan& current) { return next.grace < current.grace; }

}  // namespace muster::agent
