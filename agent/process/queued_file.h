// One worker's log file behind a FileThread: takes bytes at once, writes them in order when the
// disk does, and keeps account of what didn't get there. Used by one thread; the answers of Close()
// and what there is to say come on the file's thread and must only enqueue.
#ifndef MUSTER_AGENT_PROCESS_QUEUED_FILE_H_
#define MUSTER_AGENT_PROCESS_QUEUED_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/process/file_thread.h"

namespace muster::agent {

// Output that didn't reach a place, for the summary.
struct LostOutput {
  // A file's path, or "the console, prefixes included".
  std::string place;
  // As strerror() says it, or "it takes no more output".
  std::string reason;
  uint64_t bytes = 0;
};

class QueuedFile {
 public:
  struct Options {
    // Empty: no file, everything is taken and nothing is lost.
    std::string path;
    // As LogFile's.
    uint64_t max_bytes = 0;
    // Must outlive the object; may be null without a path.
    FileThread* thread = nullptr;
    // A line about the first failure. Shared with the thread, so it holds what it uses.
    std::function<void(const std::string& line)> say;
  };

  // Makes the folders above and the file; what is there already stays.
  explicit QueuedFile(Options options);
  // Closes it, whenever the disk comes to that.
  ~QueuedFile();
  QueuedFile(const QueuedFile&) = delete;
  QueuedFile& operator=(const QueuedFile&) = delete;

  bool has_path() const { return file_ != nullptr; }
  const std::string& path() const { return path_; }
  void Write(std::string_view bytes);
  // Writes what is queued, closes, and says what was lost in all; `done` holds what it uses.
  void Close(std::function<void(LostOutput)> done);
  // What would be lost if the disk never came back: all that it hasn't taken yet.
  LostOutput LostSoFar() const;

 private:
  struct File;
  const std::string path_;
  FileThread* const thread_;
  // Null without a path. Shared with the tasks that wait for the disk.
  std::shared_ptr<File> file_;
  uint64_t given_bytes_ = 0;
  // Refused by the thread, which has too much already.
  uint64_t refused_bytes_ = 0;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_QUEUED_FILE_H_
