#include "launcher/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace muster::launcher {
namespace {

constexpr size_t kReadBytes = 64 << 10;

int OpenForReading(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

}  // namespace

LogTail::LogTail(std::string path, std::string prefix)
    : path_(std::move(path)), prefix_(std::move(prefix)) {
  fd_ = OpenForReading(path_ + ".1");
  is_older_piece_ = fd_ >= 0;
  if (!is_older_piece_) fd_ = OpenForReading(path_);
}

LogTail::~LogTail() {
  if (fd_ >= 0) close(fd_);
}

bool LogTail::ReadMore(std::string* out) {
  char buffer[kReadBytes];
  size_t taken = 0;
  while (taken < kMostReadAtOnce) {
    ssize_t got = fd_ < 0 ? 0 : read(fd_, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      Take(std::string_view(buffer, static_cast<size_t>(got)), out);
      taken += static_cast<size_t>(got);
    } else if (!OpenNext()) {
      break;
    }
  }
  return taken > 0;
}

// At the end of what is open: false if the path leads nowhere else.
bool LogTail::OpenNext() {
  struct stat own {};
  struct stat named {};
  if (stat(path_.c_str(), &named) != 0) return false;
  bool is_same =
      fd_ >= 0 && fstat(fd_, &own) == 0 && own.st_dev == named.st_dev && own.st_ino == named.st_ino;
  if (is_same) return false;
  // It may have grown between the read and the moment at which it was put aside.
  if (fd_ >= 0 && !std::exchange(is_older_piece_, true)) return true;
  int next = OpenForReading(path_);
  if (next < 0) return false;
  if (fd_ >= 0) close(fd_);
  fd_ = next;
  is_older_piece_ = false;
  return true;
}

void LogTail::Take(std::string_view bytes, std::string* out) {
  while (!bytes.empty()) {
    size_t newline = bytes.find('\n');
    line_ += bytes.substr(0, newline);
    if (newline == std::string_view::npos) {
      if (line_.size() >= kMostReadAtOnce) End(out);
      return;
    }
    *out += prefix_;
    *out += line_;
    out->push_back('\n');
    line_.clear();
    bytes.remove_prefix(newline + 1);
  }
}

void LogTail::End(std::string* out) {
  if (line_.empty()) return;
  *out += prefix_;
  *out += line_;
  out->push_back('\n');
  line_.clear();
}

}  // namespace muster::launcher
