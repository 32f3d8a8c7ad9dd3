#include "worker_sdk/context/abort_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/check.h"

namespace muster {

AbortSignal::AbortSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { MUSTER_CHECK(fd_ >= 0); }

AbortSignal::~AbortSignal() { close(fd_); }

void AbortSignal::Raise(int lost_rank, std::string reason) {
  {
    base::MutexLock lock(mutex_);
    if (raised_.load(std::memory_order_relaxed)) return;
    lost_rank_ = lost_rank;
    reason_ = std::move(reason);
    raised_.store(true, std::memory_order_release);
  }
  uint64_t one = 1;
  // Can't fail: the counter of the eventfd is written once.
  MUSTER_CHECK(write(fd_, &one, sizeof(one)) == sizeof(one));
}

Status AbortSignal::status() const {
  if (!IsRaised()) return {};
  base::MutexLock lock(mutex_);
  return Status::PeerLost(lost_rank_, reason_);
}

}  // namespace muster
