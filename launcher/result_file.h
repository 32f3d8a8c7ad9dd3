// The machine-readable copy of how a job ended (--result-file): its text, and writing it whole or
// not at all. docs/failures.md describes the fields.
//
//   ResultFile file(path);
//   file.Write(ended);   // once, whatever the end; later calls do nothing
//
// A pipe is written as fast as its reader reads; one who stops reading is waited for, but not for
// ever, and one who isn't there isn't waited for.
//
// ResultFile is thread-safe; ResultJson() is pure.
#ifndef MUSTER_LAUNCHER_RESULT_FILE_H_
#define MUSTER_LAUNCHER_RESULT_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/mutex.h"

namespace muster::launcher {

struct EndedJob {
  std::string run_id;
  std::string node_name;
  Verdict verdict;
  // The newest round that had workers on this node; round 0: none had.
  World world;
  int attempt = 0;
  int world_size = 0;
  int node_count = 0;
  // Seconds since 1970.
  int64_t ended_at_s = 0;
};

// One JSON object and a newline. Bytes that aren't UTF-8 are replaced.
std::string ResultJson(const EndedJob& ended);

// What is wrong with the path, before anything is started: one sentence. Nothing: a file can be
// made there, as far as can be told.
std::optional<std::string> CheckResultFile(const std::string& path);

class ResultFile {
 public:
  // How long a reader of a pipe may read nothing.
  static constexpr Duration kPatience = std::chrono::seconds(10);

  // An empty path: nothing is ever written.
  explicit ResultFile(std::string path, Duration patience = kPatience)
      : path_(std::move(path)), patience_(patience) {}
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  // Replaces the file, or writes into a device or a pipe. Says in one line what went wrong; the
  // exit code stays what it is.
  void Write(const EndedJob& ended) MUSTER_EXCLUDES(mutex_);

 private:
  const std::string path_;
  const Duration patience_;
  base::Mutex mutex_;
  bool is_written_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_RESULT_FILE_H_
