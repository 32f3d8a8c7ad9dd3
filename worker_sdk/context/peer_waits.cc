#include "worker_sdk/context/peer_waits.h"

#include <chrono>

namespace muster {
namespace {

int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

PeerWaits::PeerWaits() : changed_ns_(NowNs()) {}

void PeerWaits::Count(std::atomic<int>& what, int by) {
  what.fetch_add(by);
  changed_ns_.store(NowNs());
}

Activity PeerWaits::activity() const {
  Activity activity;
  if (waits_.load() > 0) {
    activity.kind = Activity::Kind::kWaits;
  } else if (groups_.load() > 0) {
    activity.kind = Activity::Kind::kOwnCode;
  }
  // Counted in between, it lasts shorter than it did, never longer.
  activity.lasted = Duration(NowNs() - changed_ns_.load());
  return activity;
}

}  // namespace muster
