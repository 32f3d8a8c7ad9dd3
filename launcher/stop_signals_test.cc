#include "launcher/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <vector>

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

// The mask and dispositions belong to the process, so one test walks through all of it.
TEST(StopSignals, TakesSignalsUnlessTheyWereIgnored) {
  signal(SIGHUP, SIG_IGN);
  const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  StopSignals signals(taken);
  // Sent before anybody watches: kept.
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  // Ignored at the start: dropped.
  ASSERT_EQ(kill(getpid(), SIGHUP), 0);

  std::vector<int> seen;
  std::promise<void> done;
  signals.Watch([&](int number) {
    seen.push_back(number);
    if (number == SIGTERM) kill(getpid(), SIGINT);
    if (number == SIGINT) kill(getpid(), SIGUSR1);
    if (number == SIGUSR1) done.set_value();
  });
  ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(seen, (std::vector<int>{SIGTERM, SIGINT, SIGUSR1}));
}

}  // namespace
}  // namespace muster::launcher
