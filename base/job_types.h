// The plain things of a job that several processes speak of: terms, world, commit, failure,
// verdict. Values; no behaviour beyond telling what they are. The messages that carry them are in
// base/session_messages.h.
#ifndef MUSTER_BASE_JOB_TYPES_H_
#define MUSTER_BASE_JOB_TYPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"

namespace muster {

// What all nodes of a job must agree on; the first agent's terms become the job's.
struct JobTerms {
  std::string run_id;
  int min_nodes = 1;
  int max_nodes = 1;
  // True for --nnodes=N with --node-rank: group ranks are the node ranks, which must be distinct.
  bool is_static = false;
  // Worker failures that may be restarted, counted per job.
  int max_restarts = 0;
  // How long a job may be below min_nodes before it fails.
  Duration join_timeout = std::chrono::seconds(600);
  // How long a round stays open for more nodes after min_nodes was first reached.
  Duration last_call_timeout = std::chrono::seconds(30);
  // Of muster; other versions are refused.
  std::string version;

  friend bool operator==(const JobTerms&, const JobTerms&) = default;
};

// Identifies one world; carried by every message that concerns a round, to fence off stale ones.
struct World {
  RoundId round;
  WorldId id;

  friend bool operator==(const World&, const World&) = default;
};

// The newest committed checkpoint of a job.
struct Commit {
  int64_t step = 0;
  // As the worker that made the checkpoint named it (an absolute path).
  std::string directory;

  friend bool operator==(const Commit&, const Commit&) = default;
};

// How a worker ended.
struct WorkerExit {
  // Exit status 0..255; meaningless when `signal` is not 0.
  int code = 0;
  // Number of the signal that ended it, or 0.
  int signal = 0;
  bool dumped_core = false;

  bool Succeeded() const { return code == 0 && signal == 0; }
  // As a shell reports it: the code, or 128 + signal.
  int ShellCode() const { return signal != 0 ? 128 + signal : code; }
  friend bool operator==(const WorkerExit&, const WorkerExit&) = default;
};

// One worker's failure, with all that a person needs to find the cause.
struct WorkerFailure {
  Rank rank;
  LocalRank local_rank;
  std::string node_name;
  int64_t pid = 0;
  WorkerExit exit;
  // Seconds since 1970, only to show to people.
  int64_t wall_time_s = 0;
  // Time from the worker's end until this message was sent, by the agent's monotonic clock.
  Duration age{0};
  // No program ran: exit.code is 126 (not executable), 127 (not found) or 71 (the system lacked
  // what its process needs; `message` says what).
  bool failed_to_start = false;
  // Path of the worker's error file, empty if it wrote none; `message` is the text within.
  std::string error_file;
  std::string message;
  // Last lines of its stderr, at most 4 KiB, and the path of its log, if kept.
  std::string stderr_tail;
  std::string log_path;

  // The program itself is no good: the same would come of every try.
  bool IsHopeless() const { return failed_to_start && (exit.code == 126 || exit.code == 127); }
  friend bool operator==(const WorkerFailure&, const WorkerFailure&) = default;
};

// How a job ended, and why.
struct Verdict {
  bool succeeded = false;
  // One sentence: job, node, cause, and what to do next. Empty on success.
  std::string reason;
  // Exit code for `muster run` on every node (DESIGN: the root cause's own code, or 69, 78, ...).
  int exit_code = 0;
  // The root cause first, then its followers. Empty when no worker is the cause.
  std::vector<WorkerFailure> failures;
  int restarts_charged = 0;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

}  // namespace muster

#endif  // MUSTER_BASE_JOB_TYPES_H_
