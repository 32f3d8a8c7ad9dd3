#include <gtest/gtest.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/instant.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(Instant, NeverStaysNever) {
  EXPECT_TRUE((Instant::Never() + milliseconds(1)).IsNever());
  EXPECT_TRUE((Instant::Never() - milliseconds(1)).IsNever());
  EXPECT_LT(Instant(milliseconds(5)), Instant::Never());
}

TEST(SystemClock, DoesNotGoBackwards) {
  Instant a = SystemClock().Now();
  Instant b = SystemClock().Now();
  EXPECT_LE(a, b);
}

TEST(Backoff, DoublesUpToTheMostAndStaysWithinTheJitter) {
  Backoff backoff({.first = milliseconds(50), .most = milliseconds(250), .jitter_seed = 7});
  for (int base : {50, 100, 200, 250, 250}) {
    Duration wait = backoff.Next();
    EXPECT_LE(wait, milliseconds(base));
    EXPECT_GE(wait, milliseconds(base) * 3 / 4);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), milliseconds(50));
}

TEST(Backoff, TwoSeedsDoNotKeepStep) {
  Backoff a({.jitter_seed = 1}), b({.jitter_seed = 2});
  int equal = 0;
  for (int i = 0; i < 10; ++i) equal += a.Next() == b.Next();
  EXPECT_LT(equal, 5);
}

}  // namespace
}  // namespace muster
