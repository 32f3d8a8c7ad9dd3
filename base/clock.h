// Where shells get the time: an interface, so that a test owns the clock and the loop's timer
// together. Thread-safe.
#ifndef MUSTER_BASE_CLOCK_H_
#define MUSTER_BASE_CLOCK_H_

#include "base/instant.h"

namespace muster {

class Clock {
 public:
  virtual ~Clock() = default;
  // CLOCK_BOOTTIME: goes on while the machine sleeps, so a lease can't be stretched by a suspend.
  virtual Instant Now() const = 0;
};

// The machine's clock. Lives as long as the process.
const Clock& SystemClock();

}  // namespace muster

#endif  // MUSTER_BASE_CLOCK_H_
