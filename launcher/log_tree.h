// The log files of a run, as agents lay them out (agent/log_layout.h): which there are, whose they
// are (agent/run_record.h), in which order a person reads them, and whether more will come. Reads
// the file system. Thread-safe.
#ifndef MUSTER_LAUNCHER_LOG_TREE_H_
#define MUSTER_LAUNCHER_LOG_TREE_H_

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/run_record.h"

namespace muster::launcher {

// Ordered by attempt, then by rank, stdout first.
struct WorkerLog {
  int attempt = 0;
  // In the world. None: the folder has no record of it (torchrun's, or an older muster's).
  std::optional<int> rank = {};
  int local_rank = 0;
  // Of an attempt on several nodes; else empty.
  std::string node = {};
  bool is_stderr = false;
  // Of the newest piece; an older one is "<path>.1".
  std::string path = {};

  friend auto operator<=>(const WorkerLog&, const WorkerLog&) = default;
};

// Whether an agent writes to its folder.
enum class Writing { kGoesOn, kEnded, kWasKilled, kUnknown };

// What one agent left.
struct RunFolder {
  std::string path = {};
  std::optional<agent::RunRecord> record = {};
  // If not kGoesOn or kUnknown, all that it wrote was there when this was found out.
  Writing writing = Writing::kUnknown;
};

// The run's folder: `folder` itself, or the newest run below it (`folder` is a --log-dir then).
// NotFound: one sentence, if neither holds attempts.
absl::StatusOr<std::string> FindRunFolder(const std::string& folder);

// `run_folder`, and those beside it below `log_dir` of agents that were in one world with its
// agent, or with another of these. If both are one, it alone. In the order of their names.
//
// An agent that was killed lets go of its lock. That counts if it was of this machine, or if
// another agent noted the end of the whole job: on some file systems another machine's lock isn't
// seen.
std::vector<RunFolder> FoldersOfJob(const std::string& log_dir, const std::string& run_folder);

// Those that are there now, in order, and whose they are by now.
std::vector<WorkerLog> ListWorkerLogs(const std::vector<RunFolder>& folders);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_LOG_TREE_H_
