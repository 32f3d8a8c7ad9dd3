// One console stream of `muster run`: a bounded backlog and writes that never block, whatever the
// descriptor is (terminal, pipe, file, socket), without changing the flags of a descriptor that the
// shell shares with us. One thread owns it and must have SIGPIPE blocked.
#ifndef MUSTER_AGENT_PROCESS_CONSOLE_SINK_H_
#define MUSTER_AGENT_PROCESS_CONSOLE_SINK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/instant.h"

namespace muster::agent {

// Kept for a console that is slower than the workers. Beyond, lines are dropped and counted.
inline constexpr size_t kConsoleBacklogBytes = 8 << 20;
// A console that merely lags behind (`| gzip`, a captured pipe) may hold the workers up this long
// in all until it has caught up; one that takes nothing at all is waited for this long only.
inline constexpr Duration kConsolePatience = std::chrono::seconds(60);
inline constexpr Duration kStuckAfter = std::chrono::milliseconds(500);

class ConsoleSink {
 public:
  // `fd` isn't owned and must stay open.
  explicit ConsoleSink(int fd);
  ~ConsoleSink();
  ConsoleSink(const ConsoleSink&) = delete;
  ConsoleSink& operator=(const ConsoleSink&) = delete;

  bool is_terminal() const { return is_terminal_; }
  // Both descriptors lead to the same place, so that one sink should serve them.
  static bool LeadToSamePlace(int fd, int other);

  // Takes whole lines. Writes at once what the console accepts.
  void Add(Instant now, std::string_view text);
  // A line of the agent's own: kept although the backlog is full, as these are few and matter most.
  void AddAlways(Instant now, std::string_view text);
  void Flush(Instant now);

  // What to poll for POLLOUT; -1 if there is nothing to write.
  int poll_fd() const { return backlog_size() == 0 ? -1 : write_fd_; }
  size_t backlog_size() const { return backlog_.size() - written_; }
  // The workers that write here should wait, until at most HoldsUpUntil().
  bool HoldsUp(Instant now) const { return IsFull() && now < HoldsUpUntil(); }
  Instant HoldsUpUntil() const;

  uint64_t lost_bytes() const { return lost_bytes_; }
  // Why output was lost first, or empty.
  const std::string& why_lost() const { return why_lost_; }

 private:
  bool IsFull() const { return backlog_size() >= kConsoleBacklogBytes; }
  void Lose(size_t bytes, std::string_view why);
  // Keeps account of the time for which the backlog is full.
  void NoteFullness(Instant now);
  ssize_t WriteSome(std::string_view text) const;

  int write_fd_;
  bool owns_fd_ = false;
  bool is_socket_ = false;
  bool is_terminal_ = false;
  // Could not be reopened for writes that don't block: small pieces, and only after a poll.
  bool needs_care_ = false;
  std::string backlog_;
  size_t written_ = 0;
  Instant last_progress_;
  // Never() while there is room.
  Instant full_since_ = Instant::Never();
  Duration patience_left_ = kConsolePatience;
  uint64_t lost_bytes_ = 0;
  std::string why_lost_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_CONSOLE_SINK_H_
