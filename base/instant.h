// A point of monotonic time on this machine. Never crosses the wire and is never shown to people.
// Cores get instants as arguments; only shells read a clock (base/clock.h).
#ifndef MUSTER_BASE_INSTANT_H_
#define MUSTER_BASE_INSTANT_H_

#include <chrono>
#include <compare>

namespace muster {

using Duration = std::chrono::nanoseconds;

class Instant {
 public:
  constexpr Instant() = default;
  // Time since an origin that only this machine knows (its boot).
  constexpr explicit Instant(Duration since_origin) : since_origin_(since_origin) {}

  static constexpr Instant Never() { return Instant(Duration::max()); }
  constexpr bool IsNever() const { return since_origin_ == Duration::max(); }
  constexpr Duration since_origin() const { return since_origin_; }

  friend constexpr auto operator<=>(const Instant&, const Instant&) = default;
  // Never() plus or minus anything stays Never().
  friend constexpr Instant operator+(Instant t, Duration d) {
    return t.IsNever() ? t : Instant(t.since_origin_ + d);
  }
  friend constexpr Instant operator-(Instant t, Duration d) {
    return t.IsNever() ? t : Instant(t.since_origin_ - d);
  }
  friend constexpr Duration operator-(Instant a, Instant b) {
    return a.since_origin_ - b.since_origin_;
  }

 private:
  Duration since_origin_{0};
};

}  // namespace muster

#endif  // MUSTER_BASE_INSTANT_H_
