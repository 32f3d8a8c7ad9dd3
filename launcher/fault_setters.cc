#include "launcher/fault_setters.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "base/signal_name.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr int kMaxSignal = 64;

// By its name, with or without "SIG"; 0 if there is none of that name that can be caught.
int CatchableSignal(const std::string& name) {
  const std::string wanted = name.starts_with("SIG") ? name : "SIG" + name;
  for (int signal = 1; signal <= kMaxSignal; ++signal) {
    // These end or stop a process whatever it does.
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    if (SignalName(signal) == wanted) return signal;
  }
  return 0;
}

// What muster needs itself, or what tells of a fault in this process.
bool IsForStopping(int signal) {
  switch (signal) {
    case SIGCHLD:
    case SIGPIPE:
    case SIGCONT:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
    case SIGSYS:
      return false;
    default:
      return signal != 0;
  }
}

absl::Status SetStopSignals(const Given& given, RunOptions& options) {
  std::vector<int> signals;
  for (std::string_view name : Split(given.text, ',')) {
    int signal = CatchableSignal(std::string(Strip(name)));
    if (!IsForStopping(signal)) {
      return BadValue(given.who, given.text,
                      "names of signals that can stop a job, such as SIGTERM,SIGINT,SIGUSR1");
    }
    if (std::ranges::find(signals, signal) == signals.end()) signals.push_back(signal);
  }
  options.stop_signals = std::move(signals);
  return absl::OkStatus();
}

absl::Status SetLostContact(const Given& given, RunOptions& options) {
  static constexpr std::pair<std::string_view, agent::LostContact> kChoices[] = {
      {"auto", agent::LostContact::kAuto},
      {"go-on", agent::LostContact::kGoOn},
      {"stop", agent::LostContact::kStop}};
  return SetChoice(given, kChoices, "auto, go-on or stop", options.lost_contact);
}

absl::Status SetScaleUp(const Given& given, RunOptions& options) {
  static constexpr std::pair<std::string_view, ScaleUp> kChoices[] = {
      {"auto", ScaleUp::kAuto},
      {"immediate", ScaleUp::kImmediate},
      {"checkpoint", ScaleUp::kCheckpoint}};
  return SetChoice(given, kChoices, "auto, immediate or checkpoint", options.scale_up);
}

absl::Status SetPreemptionSignal(const Given& given, RunOptions& options) {
  if (given.text == "USR1" || given.text == "SIGUSR1") {
    options.preemption_signal = SIGUSR1;
  } else if (given.text == "USR2" || given.text == "SIGUSR2") {
    options.preemption_signal = SIGUSR2;
  } else {
    return BadValue(given.who, given.text, "USR1 or USR2 (SIGTERM announces one anyway)");
  }
  return absl::OkStatus();
}

absl::Status SetHangTimeout(const Given& given, RunOptions& options) {
  absl::StatusOr<Duration> seconds = Seconds(given.who, given.text);
  if (!seconds.ok()) return seconds.status();
  // Below this, a worker on a busy machine can't answer in time.
  if (*seconds > Duration(0) && *seconds < std::chrono::seconds(1)) {
    return BadValue(given.who, given.text, "0 (off), or at least 1 second");
  }
  options.hang_timeout = *seconds;
  return absl::OkStatus();
}

absl::Status SetStackSignal(const Given& given, RunOptions& options) {
  options.stack_signal = given.text == "none" ? 0 : CatchableSignal(given.text);
  if (given.text == "none" || options.stack_signal != 0) return absl::OkStatus();
  return BadValue(given.who, given.text, "the name of a signal that can be caught, or none");
}

// Nothing is polled here.
absl::Status SetMonitorInterval(const Given& given, RunOptions& options) {
  options.idle.push_back(given.who);
  return Seconds(given.who, given.text).status();
}

constexpr NamedSetter kSetters[] = {
    {"max-restarts", SetCount<&RunOptions::max_restarts>},
    {"max-restarts-per-hour", SetCount<&RunOptions::max_restarts_per_hour>},
    {"min-uptime", SetSeconds<&RunOptions::min_uptime>},
    {"max-early-failures", SetCount<&RunOptions::max_early_failures>},
    {"max-stuck-restarts", SetCount<&RunOptions::max_stuck_restarts>},
    {"max-node-failures", SetCount<&RunOptions::max_node_failures>},
    {"shutdown-timeout", SetSeconds<&RunOptions::shutdown_timeout>},
    {"signals-to-handle", SetStopSignals},
    {"preemption-file", SetFile<&RunOptions::preemption_file>},
    {"preemption-signal", SetPreemptionSignal},
    {"scale-up", SetScaleUp},
    {"lost-peer-grace", SetSeconds<&RunOptions::lost_peer_grace>},
    {"reconnect-timeout", SetSeconds<&RunOptions::reconnect_timeout>},
    {"lost-contact", SetLostContact},
    {"hang-timeout", SetHangTimeout},
    {"stack-signal", SetStackSignal},
    {"monitor-interval", SetMonitorInterval},
};

}  // namespace

std::span<const NamedSetter> FaultSetters() { return kSetters; }

}  // namespace muster::launcher
