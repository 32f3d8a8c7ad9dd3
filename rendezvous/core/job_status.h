// What `muster status` shows of a job: where it stands, and its nodes. Values.
#ifndef MUSTER_RENDEZVOUS_CORE_JOB_STATUS_H_
#define MUSTER_RENDEZVOUS_CORE_JOB_STATUS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster::rendezvous {

enum class JobState { kGathering, kClosing, kRunning, kStopping, kRecovering, kSucceeded, kFailed };

const char* JobStateName(JobState state);

// One line of `muster status`.
struct NodeStatus {
  std::string node_name;
  std::string address;
  Incarnation incarnation;
  std::optional<GroupRank> group_rank;  // none for spares and those who wait
  bool attached = false;
  // Lost too often (--max-node-failures): it takes part only if MIN can't be reached without it,
  // for so long at most.
  bool is_set_aside = false;
  Duration set_aside_left{0};
  bool hosts_rendezvous = false;              // in its process
  std::optional<std::string> leaves_because;  // none if it is to stay
  Duration since_last_message{0};
};

struct JobStatus {
  std::string run_id;
  JobState state = JobState::kGathering;
  World world;
  int attempt = 0;
  int restarts_charged = 0;
  int max_restarts = 0;
  std::optional<Commit> last_commit;
  std::vector<NodeStatus> nodes;
  std::optional<Verdict> verdict;
  std::optional<NodeStatus> departed_host;  // was let go and still hosts this rendezvous
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_JOB_STATUS_H_
