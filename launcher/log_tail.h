// Reads one log file as it grows: whole lines behind a prefix, also over the moment at which the
// file is put aside as "<path>.1" and a new one begins. Content is bytes. One thread owns it.
#ifndef MUSTER_LAUNCHER_LOG_TAIL_H_
#define MUSTER_LAUNCHER_LOG_TAIL_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::launcher {

// What one call of ReadMore() reads at most; a longer line is cut.
inline constexpr size_t kMostReadAtOnce = 1 << 20;

class LogTail {
 public:
  // Begins with what was put aside, if there is such a file.
  LogTail(std::string path, std::string prefix);
  ~LogTail();
  LogTail(const LogTail&) = delete;
  LogTail& operator=(const LogTail&) = delete;

  // Appends to `out` the whole lines that have come. False if nothing had.
  bool ReadMore(std::string* out);
  // Appends an unfinished last line, ended.
  void End(std::string* out);

 private:
  bool OpenNext();
  void Take(std::string_view bytes, std::string* out);

  const std::string path_;
  const std::string prefix_;
  int fd_ = -1;
  bool is_older_piece_ = false;
  std::string line_;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_LOG_TAIL_H_
