// How long to wait before the next try: doubles from `first` to `most`, with a deterministic jitter
// of -25 % .. 0, so that many agents that lost one rendezvous don't return in step.
// A value; not thread-safe.
#ifndef MUSTER_BASE_BACKOFF_H_
#define MUSTER_BASE_BACKOFF_H_

#include <algorithm>
#include <cstdint>

#include "base/instant.h"

namespace muster {

class Backoff {
 public:
  struct Options {
    Duration first = std::chrono::milliseconds(50);
    Duration most = std::chrono::milliseconds(250);
    // Any number that differs between the processes that retry, such as a part of their id.
    uint64_t jitter_seed = 0;
  };

  explicit Backoff(Options options) : options_(options), next_(options.first) {}

  // The wait before the next try.
  Duration Next() {
    // splitmix64: a few lines, and good enough to spread retries.
    uint64_t z = (options_.jitter_seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    Duration base = next_;
    next_ = std::min(next_ * 2, options_.most);
    return base - base / 4 * static_cast<int64_t>(z % 1024) / 1024;
  }

  // To be called after a success: the next failure starts at `first` again.
  void Reset() { next_ = options_.first; }

 private:
  Options options_;
  Duration next_;
};

}  // namespace muster

#endif  // MUSTER_BASE_BACKOFF_H_
