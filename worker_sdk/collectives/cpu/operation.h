// One operation in progress as a pure machine: which bytes it wants to send to whom, and where
// bytes that came are to go. It knows no sockets; the progress loop moves the bytes and calls it
// from one thread. Buffers of the caller stay valid for the operation's life.
//
// Bytes between two ranks travel in lanes: ordered streams that are independent of each other.
// Every operation opens with its Call in both directions that it uses; the loop does that and
// compares.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_OPERATION_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "worker_sdk/collectives/cpu/wire.h"

namespace muster::cpu {

// The way of `this` rank and how many there are.
struct Place {
  int rank = 0;
  int world_size = 1;
};

// Bytes to send, at most kSegmentBytes of them.
struct Outgoing {
  uint8_t lane = 0;
  const std::byte* data = nullptr;
  size_t size = 0;
};

// Where a frame's payload goes.
struct Destination {
  enum class Kind {
    kHere,   // to `data`
    kLater,  // there is no room yet; ask again after something else has arrived
    kWrong,  // the peer may not send this now: it doesn't speak our protocol
  };
  Kind kind = Kind::kWrong;
  std::byte* data = nullptr;
};

class Operation {
 public:
  explicit Operation(const Call& call) : call_(call) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const Call& call() const { return call_; }

  // Whether the call goes to that rank, and comes from it. Collectives: all.
  virtual bool SpeaksTo(int peer) const = 0;
  virtual bool HearsFrom(int peer) const = 0;
  // What to send to `peer` next; counts as taken. None: nothing, or nothing yet.
  virtual std::optional<Outgoing> NextFor(int peer) = 0;
  // Nothing will follow for `peer`.
  virtual bool IsAllTaken(int peer) const = 0;
  // Where `size` bytes from `peer` in `lane` go.
  virtual Destination PlaceFor(int peer, uint8_t lane, size_t size) = 0;
  // They are there.
  virtual void Arrived(int peer, uint8_t lane, size_t size) = 0;
  // Nothing is missing from `peer`.
  virtual bool HasAllFrom(int peer) const = 0;

 private:
  const Call call_;
};

// A stream of bytes that is sent in segments, as far as it is ready.
struct OutLane {
  const std::byte* data = nullptr;
  size_t total = 0;
  size_t ready = 0;
  size_t taken = 0;

  bool IsAllTaken() const { return taken == total; }
  std::optional<Outgoing> Next(uint8_t lane) {
    size_t size = ready - taken < kSegmentBytes ? ready - taken : kSegmentBytes;
    if (size == 0) return std::nullopt;
    Outgoing next{lane, data + taken, size};
    taken += size;
    return next;
  }
};

// A stream of bytes that is received where it belongs.
struct InLane {
  std::byte* data = nullptr;
  size_t total = 0;
  size_t got = 0;

  bool HasAll() const { return got == total; }
  Destination PlaceFor(size_t size) const {
    if (size > total - got) return {};
    return {Destination::Kind::kHere, data + got};
  }
};

// Which part of `count` elements is rank `index`'s: parts differ by at most one element.
struct Part {
  size_t begin = 0;
  size_t count = 0;
};
inline Part PartOf(size_t count, int parts, int index) {
  size_t n = static_cast<size_t>(parts), i = static_cast<size_t>(index);
  size_t small = count / n, larger = count % n;
  return {i * small + (i < larger ? i : larger), small + (i < larger ? 1 : 0)};
}

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_OPERATION_H_
