// Where a node's workers write: the run's folder under --log-dir, the private folder for error
// files, and the paths within. Made by Agent at the start, before anything else is; not
// thread-safe.
//
//   <log-dir>/<run id>_<random>/attempt_<n>/<local rank>/{stdout.log,stderr.log}
//   <log-dir>/<run id>_<random>/attempt_<n>/<local rank>/{error.json,stacks.txt}
//   <log-dir>/<run id>_<random>/attempt_<n>/{filtered_stdout.log,filtered_stderr.log}
//   <log-dir>/<run id>_<random>/.muster_run: agent/run_record.h
#ifndef MUSTER_AGENT_LOG_LAYOUT_H_
#define MUSTER_AGENT_LOG_LAYOUT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/private_folder.h"
#include "agent/run_record.h"
#include "base/ids.h"

namespace muster::agent {

class LogLayout {
 public:
  struct Options {
    // --log-dir; empty: files of redirected streams go to a temporary folder that is kept, error
    // files to one that isn't. "/dev/null": no files at all, as torchrun has it.
    std::string log_dir;
    std::string run_id;
    // As people know this node.
    std::string node_name = {};
    // Some stream is redirected or teed.
    bool needs_files = false;
  };

  // Makes the kept folder and names the private one, which MakeAttempt() makes. FailedPrecondition:
  // one can't be made or written; the message names it and what to do.
  static absl::StatusOr<LogLayout> Make(const Options& options);

  // Where logs stay; empty if nowhere.
  const std::string& kept_folder() const { return kept_folder_; }
  // Removed at the end by whoever made the layout; empty if there is none.
  std::string private_folder() const { return private_folder_ ? private_folder_->path() : ""; }

  // Of the kept folder; null if there is none. Shared with whoever writes to it on a disk that may
  // be stuck for longer than the agent lives.
  const std::shared_ptr<RunRecordWriter>& record() const { return record_; }

  bool has_folder() const { return !kept_folder_.empty() || private_folder_; }

  // Makes the folders of one attempt's workers. A failure is not reported: the job goes on, and
  // whoever opens a file there says so.
  void MakeAttempt(int attempt, int worker_count) const;

  // Empty where there is no such file.
  std::string StdoutFile(int attempt, LocalRank local_rank) const;
  std::string StderrFile(int attempt, LocalRank local_rank) const;
  std::string FilteredStdoutFile(int attempt) const;
  std::string FilteredStderrFile(int attempt) const;
  std::string StacksFile(int attempt, LocalRank local_rank) const;
  std::string ErrorFile(int attempt, LocalRank local_rank) const;

 private:
  LogLayout() = default;

  std::string kept_folder_;
  std::shared_ptr<RunRecordWriter> record_;
  // Shared by the copies of this value: it is in use as long as one of them lives.
  std::shared_ptr<PrivateFolder> private_folder_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_LOG_LAYOUT_H_
