// Numbers that the job's rules go by: exit codes of theirs, and how much is said to people. Private
// to the rules (job_rules.h).
#ifndef MUSTER_RENDEZVOUS_CORE_JOB_LIMITS_H_
#define MUSTER_RENDEZVOUS_CORE_JOB_LIMITS_H_

#include <algorithm>
#include <cstddef>

#include "base/instant.h"

namespace muster::rendezvous {

// Exit codes of `muster run` where no worker is the cause (DESIGN: 69 timed out, 75 run it again).
inline constexpr int kExitTimedOut = 69;
inline constexpr int kExitRunAgain = 75;
// Those who wait are told of a change at most this often: a thousand notices a second in all, for
// they are in the way of those that wait for their start.
constexpr Duration NoticeInterval(size_t waiting) {
  return std::max<Duration>(std::chrono::seconds(1), std::chrono::milliseconds(waiting));
}
// Differences of so many nodes are recorded; all others are told to the node alone.
inline constexpr size_t kMaxKnownToDiffer = 64;
// So many of the missing are named.
inline constexpr size_t kMaxMissingNamed = 8;

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_JOB_LIMITS_H_
