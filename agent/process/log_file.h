// One worker's log file: gets every byte as it is. What can't be written is counted, and writing
// goes on when space returns. Writing to a file blocks as long as its file system does. One thread
// owns it.
#ifndef MUSTER_AGENT_PROCESS_LOG_FILE_H_
#define MUSTER_AGENT_PROCESS_LOG_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::agent {

class LogFile {
 public:
  // Empty path: no file, everything is taken and nothing is lost. A file that would grow beyond
  // `max_bytes` is renamed to "<path>.1", over an older one, and a new one begins, between two
  // lines where there is an end of line; 0: no limit.
  explicit LogFile(std::string path, uint64_t max_bytes = 0);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Makes the folders above and the file. What an earlier round has left there stays, and is
  // written on.
  void Open();
  // A file that somebody has removed is given up.
  void Write(std::string_view bytes);
  void Close();

  const std::string& path() const { return path_; }
  uint64_t lost_bytes() const { return lost_bytes_; }
  // Of the first failure, as strerror() says it; empty if there was none.
  const std::string& failure() const { return failure_; }
  // Output was put away for good, in favour of newer.
  bool has_dropped() const { return has_dropped_; }

 private:
  void OpenFile();
  void WriteAll(std::string_view bytes);
  // Of `given` bytes that were just written, whether anybody can find them.
  void CheckIsThere(size_t given);
  void Rotate();
  void Fail(int error);

  const std::string path_;
  const uint64_t max_bytes_;
  int fd_ = -1;
  // Of the file that is open.
  uint64_t size_ = 0;
  bool is_at_line_start_ = true;
  bool has_rotated_ = false;
  bool has_dropped_ = false;
  uint64_t lost_bytes_ = 0;
  std::string failure_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_LOG_FILE_H_
