// Ends every wait of a worker's data plane at once: a flag to look at and a descriptor to poll
// beside sockets. Raised once, by the agent's push; stays raised. Thread-safe.
#ifndef MUSTER_WORKER_SDK_CONTEXT_ABORT_SIGNAL_H_
#define MUSTER_WORKER_SDK_CONTEXT_ABORT_SIGNAL_H_

#include <atomic>
#include <string>

#include "base/mutex.h"
#include "worker_sdk/context/status.h"

namespace muster {

class AbortSignal {
 public:
  AbortSignal();
  ~AbortSignal();
  AbortSignal(const AbortSignal&) = delete;
  AbortSignal& operator=(const AbortSignal&) = delete;

  // The first call decides rank and reason; later ones do nothing.
  void Raise(int lost_rank, std::string reason);
  bool IsRaised() const { return raised_.load(std::memory_order_acquire); }
  // PeerLost{rank, reason} once raised, OK before.
  Status status() const;
  // Readable from Raise() on (an eventfd). Owned by this object.
  int fd() const { return fd_; }

 private:
  std::atomic<bool> raised_{false};
  int fd_;
  mutable base::Mutex mutex_;
  int lost_rank_ MUSTER_GUARDED_BY(mutex_) = -1;
  std::string reason_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_ABORT_SIGNAL_H_
