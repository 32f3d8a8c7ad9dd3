#include "agent/process/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace muster::agent {

LogFile::LogFile(std::string path, uint64_t max_bytes)
    : path_(std::move(path)), max_bytes_(max_bytes) {}

LogFile::~LogFile() { Close(); }

void LogFile::Open() {
  if (path_.empty()) return;
  std::error_code error;
  // If this fails, so does open(), with a reason.
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  OpenFile();
}

void LogFile::OpenFile() {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) return Fail(errno);
  struct stat status {};
  size_ = fstat(fd_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

void LogFile::Write(std::string_view bytes) {
  if (path_.empty()) return;
  while (max_bytes_ > 0 && size_ + bytes.size() > max_bytes_) {
    // What still fits, up to an end of line; a line that doesn't fit begins the next file. One that
    // has begun here is ended here.
    size_t room = max_bytes_ > size_ ? max_bytes_ - size_ : 0;
    size_t cut = room == 0 ? std::string_view::npos : bytes.rfind('\n', room - 1);
    if (cut == std::string_view::npos && !is_at_line_start_) cut = bytes.find('\n');
    if (cut == std::string_view::npos && (!is_at_line_start_ || size_ == 0)) break;
    size_t kept = cut == std::string_view::npos ? 0 : cut + 1;
    WriteAll(bytes.substr(0, kept));
    bytes.remove_prefix(kept);
    if (bytes.empty()) return;
    Rotate();
  }
  WriteAll(bytes);
}

void LogFile::WriteAll(std::string_view bytes) {
  if (bytes.empty()) return;
  is_at_line_start_ = bytes.back() == '\n';
  const size_t given = bytes.size();
  while (fd_ >= 0 && !bytes.empty()) {
    ssize_t wrote = write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      Fail(errno);
      break;
    }
    size_ += static_cast<uint64_t>(wrote);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  lost_bytes_ += bytes.size();
  CheckIsThere(given - bytes.size());
}

void LogFile::CheckIsThere(size_t given) {
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0 || status.st_nlink > 0) return;
  // What goes into it now is seen by nobody.
  lost_bytes_ += given;
  if (failure_.empty()) failure_ = "it was removed";
  Close();
}

void LogFile::Rotate() {
  if (fd_ < 0) {
    size_ = 0;
    return;
  }
  has_dropped_ = has_dropped_ || std::exchange(has_rotated_, true);
  const std::string older = path_ + ".1";
  if (std::rename(path_.c_str(), older.c_str()) != 0) Fail(errno);
  Close();
  OpenFile();
  // Where renaming failed it goes on in the old file, and tries again as much later.
  size_ = 0;
}

void LogFile::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void LogFile::Fail(int error) {
  if (failure_.empty()) failure_ = std::strerror(error);
}

}  // namespace muster::agent
