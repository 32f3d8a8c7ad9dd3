#include "launcher/stop_signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/check.h"

namespace muster::launcher {

StopSignals::StopSignals(std::span<const int> signals) {
  sigemptyset(&taken_);
  for (int number : signals) {
    struct sigaction current;
    MUSTER_CHECK(sigaction(number, nullptr, &current) == 0);
    // A blocked signal would reach us in spite of being ignored, so it isn't blocked.
    if (current.sa_handler != SIG_IGN) sigaddset(&taken_, number);
  }
  MUSTER_CHECK(pthread_sigmask(SIG_BLOCK, &taken_, nullptr) == 0);
  // A reader of our output that goes away must not end the job.
  std::signal(SIGPIPE, SIG_IGN);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  MUSTER_CHECK(stop_fd_ >= 0);
}

StopSignals::~StopSignals() {
  uint64_t one = 1;
  if (write(stop_fd_, &one, sizeof(one)) == sizeof(one) && thread_.joinable()) thread_.join();
  close(stop_fd_);
}

void StopSignals::Watch(std::function<void(int)> on_signal) {
  int signal_fd = signalfd(-1, &taken_, SFD_CLOEXEC);
  MUSTER_CHECK(signal_fd >= 0);
  thread_ = std::thread([this, signal_fd, on_signal = std::move(on_signal)] {
    pollfd fds[] = {{.fd = stop_fd_, .events = POLLIN, .revents = 0},
                    {.fd = signal_fd, .events = POLLIN, .revents = 0}};
    while (true) {
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[0].revents != 0) break;
      signalfd_siginfo info;
      if (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
        on_signal(static_cast<int>(info.ssi_signo));
      }
    }
    close(signal_fd);
  });
}

}  // namespace muster::launcher
