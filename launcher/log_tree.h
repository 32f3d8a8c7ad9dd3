// The log files of a run, as agents lay them out (agent/log_layout.h): which there are, and in
// which order a person reads them. Reads the file system. Thread-safe.
#ifndef MUSTER_LAUNCHER_LOG_TREE_H_
#define MUSTER_LAUNCHER_LOG_TREE_H_

#include <compare>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

// Ordered by attempt, then by local rank, stdout first.
struct WorkerLog {
  int attempt = 0;
  int local_rank = 0;
  bool is_stderr = false;
  // Of the newest piece; an older one is "<path>.1".
  std::string path;

  friend auto operator<=>(const WorkerLog&, const WorkerLog&) = default;
};

// The run's folder: `folder` itself, or the newest run below it (`folder` is a --log-dir then).
// NotFound: one sentence, if neither holds attempts.
absl::StatusOr<std::string> FindRunFolder(const std::string& folder);

// Those that are there now, in order.
std::vector<WorkerLog> ListWorkerLogs(const std::string& run_folder);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_LOG_TREE_H_
