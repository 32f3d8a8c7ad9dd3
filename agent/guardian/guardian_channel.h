// Frames between the agent and its guardian over one stream socket; descriptors travel beside them.
// One object at each end. Not thread-safe. Never blocks: what can't be sent now is kept, within a
// bound. Both ends are the same binary, so a malformed frame means that the other end is broken:
// the channel is then closed.
//
// A frame: length (u32, of what follows), kind (u8), number of descriptors (u8), body.
#ifndef MUSTER_AGENT_GUARDIAN_GUARDIAN_CHANNEL_H_
#define MUSTER_AGENT_GUARDIAN_GUARDIAN_CHANNEL_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent::guardian {

// A worker's command may be as large as exec allows on any system (6 MiB), with room to spare.
inline constexpr size_t kMaxFrameBytes = 8 << 20;
// Unsent bytes above which the other end counts as dead (256 workers with large environments).
inline constexpr size_t kMaxBacklogBytes = 512 << 20;

enum class FrameKind : uint8_t {
  // To the guardian.
  // Round, local rank, whether it has stdout, stderr (as descriptors) and input, its processors,
  // argv, environment.
  kSpawn = 1,
  kStop,      // round, first signal, grace (ns)
  kSignal,    // signal; then nothing, or round and local rank
  kDeadline,  // ns on CLOCK_BOOTTIME
  kFolder,    // path to remove at the end
  kPing,
  kPreload,  // modules, argv, environment
  // To the agent.
  kStarted,        // round, local rank, pid
  kFailedToStart,  // round, local rank, errno
  kExited,         // round, local rank, pid, code, signal, dumped core
  kLeft,           // round, what is left of the grace (ns), pids
  kGone,           // round, pids of the unkillable
  kPong,
  kPreloadLost,  // why
};

struct Frame {
  FrameKind kind = FrameKind::kPing;
  std::string body;
  // Received: owned by whoever takes the frame. Sent: duplicated by the kernel, closed by Send().
  std::vector<int> fds;
};

class GuardianChannel {
 public:
  // Takes over `socket`.
  explicit GuardianChannel(int socket);
  ~GuardianChannel();
  GuardianChannel(const GuardianChannel&) = delete;
  GuardianChannel& operator=(const GuardianChannel&) = delete;

  int socket() const { return socket_; }

  // Queues a frame (at most 200 descriptors) and sends what the socket takes. Nothing happens on a
  // dead channel.
  void Send(Frame frame);
  // Sends more of the queue; call it when the socket is writable.
  void Flush();
  bool has_backlog() const { return !outgoing_.empty(); }

  // Reads all that has arrived. False if the other end is closed or broken, and from then on;
  // frames that came before can still be taken.
  bool Receive();
  std::optional<Frame> Next();
  bool is_dead() const { return is_dead_; }

 private:
  struct Outgoing {
    std::string bytes;
    size_t sent = 0;
    std::vector<int> fds;
  };

  bool ReceiveSome();
  void Fail();

  int socket_;
  bool is_dead_ = false;
  std::deque<Outgoing> outgoing_;
  size_t backlog_bytes_ = 0;
  std::string incoming_;
  size_t taken_ = 0;
  std::deque<int> incoming_fds_;
};

// Numbers and strings in a frame's body, in the machine's byte order. A reader that meets the end
// gives zeros and empty strings, and IsComplete() is false.
class BodyWriter {
 public:
  BodyWriter& Int(int64_t value);
  BodyWriter& Text(std::string_view text);
  BodyWriter& Ints(const std::vector<int>& values);
  BodyWriter& Texts(const std::vector<std::string>& texts);
  std::string Take() { return std::move(body_); }

 private:
  std::string body_;
};

class BodyReader {
 public:
  // `body` must outlive the reader.
  explicit BodyReader(std::string_view body) : rest_(body) {}
  int64_t Int();
  std::string Text();
  std::vector<int> Ints();
  std::vector<std::string> Texts();
  // All was there, and nothing is left.
  bool IsComplete() const { return !is_short_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_short_ = false;
};

}  // namespace muster::agent::guardian

#endif  // MUSTER_AGENT_GUARDIAN_GUARDIAN_CHANNEL_H_
