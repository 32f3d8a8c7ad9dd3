// Which log files of a run `muster logs` was asked for, and what is said if there are none. Pure.
#ifndef MUSTER_LAUNCHER_LOG_CHOICE_H_
#define MUSTER_LAUNCHER_LOG_CHOICE_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/log_tree.h"

namespace muster::launcher {

// What isn't given counts for all.
struct LogChoice {
  // In the world.
  std::optional<int> rank = {};
  std::optional<int> local_rank = {};
  std::optional<int> attempt = {};

  bool Takes(const WorkerLog& log) const;
};

// What a run has, as far as it is known.
struct KnownLogs {
  // As the user named it.
  std::string folder = {};
  std::vector<RunFolder> folders = {};
  std::vector<WorkerLog> logs = {};
};

// One sentence: why none of the files is taken, and which there are.
std::string WhyNoLogs(const LogChoice& choice, const KnownLogs& known);

// None will come, as far as the job's size tells: a rank that no attempt has had. An attempt that
// isn't there yet may come.
bool IsHopeless(const LogChoice& choice, const KnownLogs& known);

// "0-3, 6"; of many the beginning.
std::string RangesOf(const std::set<int>& numbers);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_LOG_CHOICE_H_
