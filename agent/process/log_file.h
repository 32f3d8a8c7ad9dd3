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
  // Empty path: no file, everything is taken and nothing is lost.
  explicit LogFile(std::string path);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Makes the folders above and the file, anew.
  void Open();
  void Write(std::string_view bytes);
  void Close();

  const std::string& path() const { return path_; }
  uint64_t lost_bytes() const { return lost_bytes_; }
  // Of the first failure, as strerror() says it; empty if there was none.
  const std::string& failure() const { return failure_; }

 private:
  void Fail(int error);

  std::string path_;
  int fd_ = -1;
  uint64_t lost_bytes_ = 0;
  std::string failure_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_LOG_FILE_H_
