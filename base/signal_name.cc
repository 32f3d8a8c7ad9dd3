#include "base/signal_name.h"

#include <array>

namespace muster {

std::string SignalName(int signal) {
  // Linux numbers, the same on every machine that muster builds for.
  static constexpr std::array<const char*, 32> kNames = {
      nullptr,   "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
      "SIGFPE",  "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
      nullptr,   "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
      "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};
  constexpr int kFirstRealTime = 34;
  constexpr int kLastRealTime = 64;
  if (signal > 0 && signal < static_cast<int>(kNames.size()) && kNames[signal] != nullptr) {
    return kNames[signal];
  }
  if (signal == kFirstRealTime) return "SIGRTMIN";
  if (signal > kFirstRealTime && signal <= kLastRealTime) {
    return "SIGRTMIN+" + std::to_string(signal - kFirstRealTime);
  }
  return "signal " + std::to_string(signal);
}

}  // namespace muster
