// What a rendezvous keeps of a job on disk (`--state-dir`), for its next life: what must not be
// lost with the agents that know it. A value.
#ifndef MUSTER_RENDEZVOUS_CORE_JOB_RECORD_H_
#define MUSTER_RENDEZVOUS_CORE_JOB_RECORD_H_

#include <optional>

#include "base/ids.h"
#include "base/job_types.h"

namespace muster::rendezvous {

struct JobRecord {
  // Of the last round; the next has a higher number.
  World world{};
  // The newest commit, and the round that made it. It counts when a node comes back that was in the
  // job; newcomers alone begin anew.
  std::optional<Commit> commit{};
  RoundId commit_round{};
  // How the job ended.
  std::optional<Verdict> verdict{};

  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_JOB_RECORD_H_
