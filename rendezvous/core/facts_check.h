// What differs between two nodes of a job that had better be alike: versions of CUDA, driver and
// NCCL, the number of GPUs, the clocks. Such a difference is said to people, not refused: many a
// job runs well with it, and many a riddle is solved by it. Pure; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_FACTS_CHECK_H_
#define MUSTER_RENDEZVOUS_CORE_FACTS_CHECK_H_

#include <string>

#include "base/instant.h"
#include "base/job_types.h"

namespace muster::rendezvous {

// Clocks further apart than this are said: logs of several nodes can't be read together then, and
// tickets expire.
inline constexpr Duration kClockTolerance = std::chrono::seconds(5);

struct NodeOnRecord {
  std::string name;
  NodeFacts facts;
  // When the facts came, by the rendezvous' own clock: what the nodes' clocks are compared by.
  Instant received;
};

// One sentence with both values and both names; empty if nothing differs or too little is known.
// `newcomer` came after `earlier`.
std::string DifferencesOf(const NodeOnRecord& earlier, const NodeOnRecord& newcomer);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_FACTS_CHECK_H_
