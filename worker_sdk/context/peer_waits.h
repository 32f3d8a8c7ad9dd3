// Whether this worker waits for others: what the agent asks when nobody makes a step, to tell the
// rank that hangs from those that wait for it. Groups say when they begin and end an operation, the
// channel when it asks the agent. An operation counts from its start, whether or not the program
// waits for it by then: those of a rank that hangs in its own code end nevertheless, since a group
// has a thread of its own.
//
// Thread-safe, without locks: a forked child, which may destroy what its parent began, can't block.
#ifndef MUSTER_WORKER_SDK_CONTEXT_PEER_WAITS_H_
#define MUSTER_WORKER_SDK_CONTEXT_PEER_WAITS_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/job_types.h"

namespace muster {

class PeerWaits {
 public:
  // While it lives, the worker waits. May be moved; an empty one means nothing.
  class Wait {
   public:
    Wait() = default;
    // `waits` outlives this; null: nobody wants to know.
    explicit Wait(PeerWaits* waits) : waits_(waits) {
      if (waits_ != nullptr) waits_->Count(waits_->waits_, 1);
    }
    ~Wait() {
      if (waits_ != nullptr) waits_->Count(waits_->waits_, -1);
    }
    Wait(Wait&& other) noexcept : waits_(std::exchange(other.waits_, nullptr)) {}
    Wait& operator=(Wait&& other) noexcept {
      std::swap(waits_, other.waits_);
      return *this;
    }

   private:
    PeerWaits* waits_ = nullptr;
  };

  PeerWaits();
  PeerWaits(const PeerWaits&) = delete;
  PeerWaits& operator=(const PeerWaits&) = delete;

  // A group of several ranks was made, and is left. Without one the worker's collectives, if it has
  // any, are another library's: then what isn't a wait isn't known to be its own code.
  void GroupMade() { Count(groups_, 1); }
  void GroupLeft() { Count(groups_, -1); }

  Activity activity() const;

 private:
  void Count(std::atomic<int>& what, int by);

  std::atomic<int> groups_{0};
  std::atomic<int> waits_{0};
  // When one of them was counted, by the steady clock.
  std::atomic<int64_t> changed_ns_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_PEER_WAITS_H_
