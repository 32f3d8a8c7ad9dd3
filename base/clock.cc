#include "base/clock.h"

#include <time.h>

namespace muster {
namespace {

class BootTimeClock : public Clock {
 public:
  Instant Now() const override {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return Instant(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
};

}  // namespace

const Clock& SystemClock() {
  static const BootTimeClock clock;
  return clock;
}

}  // namespace muster
