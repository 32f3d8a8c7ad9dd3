#include "agent/process/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace muster::agent {

LogFile::LogFile(std::string path) : path_(std::move(path)) {}

LogFile::~LogFile() { Close(); }

void LogFile::Open() {
  if (path_.empty()) return;
  std::error_code error;
  // If this fails, so does open(), with a reason.
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) Fail(errno);
}

void LogFile::Write(std::string_view bytes) {
  if (path_.empty()) return;
  while (fd_ >= 0 && !bytes.empty()) {
    ssize_t wrote = write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      Fail(errno);
      break;
    }
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  lost_bytes_ += bytes.size();
}

void LogFile::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void LogFile::Fail(int error) {
  if (failure_.empty()) failure_ = std::strerror(error);
}

}  // namespace muster::agent
