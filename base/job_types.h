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

// When a running job takes in a node for which it has a place.
enum class ScaleUp {
  // At the next committed checkpoint if the job commits checkpoints through the SDK, else at once.
  kAuto = 0,
  kImmediate = 1,
  kCheckpoint = 2,
};

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
  // The program and its arguments, as a shell would take them. Empty: not compared
  // (--allow-other-programs).
  std::string program;
  // Worker failures within any hour that may be restarted; 0: as many as max_restarts allows.
  int max_restarts_per_hour = 0;
  // A job none of whose rounds has lived this long when `max_early_failures` of them in a row ended
  // in a worker's failure isn't started again; 0 failures: however often.
  Duration min_uptime = std::chrono::seconds(1);
  int max_early_failures = 0;
  // Restarts in a row that ended at the same step, as the SDK reports it, after which the job isn't
  // started again; 0: however often.
  int max_stuck_restarts = 0;
  // Losses of one node without a commit or a minute of uptime between them, after which it is set
  // aside; 0: never.
  int max_node_failures = 0;
  ScaleUp scale_up = ScaleUp::kAuto;

  friend bool operator==(const JobTerms&, const JobTerms&) = default;
};

// What of a node the others should know; differences are said, not refused.
struct NodeFacts {
  // Versions as the node's libraries give them; empty: there is none. At most 64 bytes.
  std::string cuda_version;
  std::string driver_version;
  std::string nccl_version;
  int gpu_count = 0;
  // Milliseconds since 1970 by the node's clock when Attach was sent; 0: unknown.
  int64_t wall_time_ms = 0;
  // Where the node is, for --topology-key: nodes with near names get near ranks. At most 256 bytes.
  std::string topology;

  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
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

// What a worker does between its steps, as far as its SDK can tell.
struct Activity {
  enum class Kind : uint8_t {
    // It has no group of the SDK's: its collectives, if any, are another library's.
    kUnknown = 0,
    // Nothing that it began with other ranks, or asked of its agent, is still to end.
    kOwnCode = 1,
    // Something is.
    kWaits = 2,
  };
  Kind kind = Kind::kUnknown;
  // For how long nothing of that kind has begun or ended.
  Duration lasted{0};

  friend bool operator==(const Activity&, const Activity&) = default;
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
  // The agent ended it because it made no step within --hang-timeout.
  bool hung = false;
  // It hung in waiting for other ranks, as all others did that were asked: it was ended so that the
  // job can go on, and need not be the cause.
  bool only_waited = false;
  // The kernel killed it for want of memory; `evidence` says how that is known.
  bool out_of_memory = false;
  // One sentence on the cause beyond `exit` (memory limit and peak, what hung and for how long), or
  // empty: there is no evidence.
  std::string evidence;
  // Where its core dump and, if it hung, its stacks are kept; empty: nowhere.
  std::string core_file;
  std::string stacks_file;
  // The last step that it reported through the SDK; -1: none.
  int64_t last_step = -1;

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
