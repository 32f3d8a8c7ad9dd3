#include "agent/process/console_sink.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace muster::agent {
namespace {

constexpr std::string_view kNoRoom = "it takes no more output";

}  // namespace

ConsoleSink::ConsoleSink(int fd) : write_fd_(fd), is_terminal_(isatty(fd) != 0) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
  // O_NONBLOCK belongs to the open file, which the shell and others share: open it once more.
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own >= 0) {
    write_fd_ = own;
    owns_fd_ = true;
  } else {
    needs_care_ = true;
  }
}

ConsoleSink::~ConsoleSink() {
  if (owns_fd_) close(write_fd_);
}

bool ConsoleSink::LeadToSamePlace(int fd, int other) {
  struct stat a {};
  struct stat b {};
  return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

void ConsoleSink::Add(Instant now, std::string_view text) {
  if (text.empty()) return;
  if (IsFull()) Flush(now);
  // While there is patience the readers hold off, but what they had read already is kept.
  bool is_excess = backlog_size() >= kConsoleBacklogBytes * 3 / 2;
  if (IsFull() && (is_excess || !HoldsUp(now))) {
    Lose(text.size(), kNoRoom);
    return;
  }
  if (backlog_size() == 0) last_progress_ = now;
  backlog_ += text;
  Flush(now);
}

void ConsoleSink::AddAlways(Instant now, std::string_view text) {
  if (backlog_size() >= 2 * kConsoleBacklogBytes) {
    Lose(text.size(), kNoRoom);
    return;
  }
  backlog_ += text;
  Flush(now);
}

void ConsoleSink::Flush(Instant now) {
  while (backlog_size() > 0) {
    std::string_view rest = backlog_;
    rest.remove_prefix(written_);
    ssize_t wrote = WriteSome(rest);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (wrote < 0) {
      // The reader is gone, or the disk behind a redirection is full.
      Lose(backlog_size(), std::strerror(errno));
      written_ = backlog_.size();
      break;
    }
    written_ += static_cast<size_t>(wrote);
    last_progress_ = now;
  }
  NoteFullness(now);
  if (backlog_size() == 0) {
    backlog_.clear();
    written_ = 0;
    patience_left_ = kConsolePatience;
  } else if (written_ >= kConsoleBacklogBytes / 4) {
    backlog_.erase(0, written_);
    written_ = 0;
  }
}

ssize_t ConsoleSink::WriteSome(std::string_view text) const {
  if (is_socket_) return send(write_fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (!needs_care_) return write(write_fd_, text.data(), text.size());
  pollfd writable{write_fd_, POLLOUT, 0};
  if (poll(&writable, 1, 0) <= 0) {
    errno = EAGAIN;
    return -1;
  }
  // A pipe that polls as writable has room for PIPE_BUF bytes.
  return write(write_fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
}

Instant ConsoleSink::HoldsUpUntil() const {
  return std::min(full_since_ + patience_left_, last_progress_ + kStuckAfter);
}

void ConsoleSink::NoteFullness(Instant now) {
  if (IsFull() && full_since_.IsNever()) {
    full_since_ = now;
  } else if (!IsFull() && !full_since_.IsNever()) {
    patience_left_ = std::max(Duration::zero(), patience_left_ - (now - full_since_));
    full_since_ = Instant::Never();
  }
}

void ConsoleSink::Lose(size_t bytes, std::string_view why) {
  lost_bytes_ += bytes;
  if (why_lost_.empty()) why_lost_ = why;
}

}  // namespace muster::agent
