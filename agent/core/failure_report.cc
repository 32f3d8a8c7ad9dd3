#include "agent/core/failure_report.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/signal_name.h"
#include "base/visible_text.h"

namespace muster::agent {
namespace {

constexpr size_t kMinWidth = 60;
constexpr size_t kMaxWidth = 100;
// Followers named in full; a job of thousands of ranks has as many.
constexpr size_t kMostOthers = 16;
constexpr char kSentFromOutside[] = ", sent from outside muster, the sender is unknown";
constexpr char kHowToTrace[] =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

std::string TimeText(int64_t wall_time_s) {
  auto time = static_cast<time_t>(wall_time_s);
  tm local{};
  localtime_r(&time, &local);
  char text[64];
  size_t size = strftime(text, sizeof text, "%Y-%m-%d_%H:%M:%S", &local);
  return std::string(text, size);
}

// Each line of `text` after `indent`.
std::string Indented(std::string_view text, std::string_view indent) {
  std::string out;
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (!out.empty()) out += '\n';
    out += indent;
    out += text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

// Those that a process rarely brings upon itself. muster's own end no worker before its failure.
bool IsSentByOthers(int signal) {
  switch (signal) {
    case SIGHUP:
    case SIGINT:
    case SIGQUIT:
    case SIGKILL:
    case SIGTERM:
    case SIGUSR1:
    case SIGUSR2:
      return true;
    default:
      return false;
  }
}

// Where nothing is known of the cause.
std::string SenderOf(const WorkerFailure& f) {
  bool is_known = f.hung || f.out_of_memory || !f.evidence.empty();
  return !is_known && IsSentByOthers(f.exit.signal) ? kSentFromOutside : "";
}

// Its last words end with what its error file says: an uncaught exception of Python's is in both.
bool IsInTail(const WorkerFailure& f) {
  const std::string last_line = f.message.substr(f.message.rfind('\n') + 1);
  return !last_line.empty() && f.stderr_tail.find(last_line) != std::string::npos;
}

std::string Traceback(const WorkerFailure& f) {
  // Lines after the first stand under the first.
  if (!f.message.empty()) return Indented(f.message, "  ").substr(2);
  if (f.exit.signal != 0) {
    return "Signal " + std::to_string(f.exit.signal) + " (" + SignalName(f.exit.signal) +
           ") received by PID " + std::to_string(f.pid) +
           (f.exit.dumped_core ? " (core dumped)" : "") + SenderOf(f);
  }
  return kHowToTrace;
}

// In a verdict all ages are as of one moment.
std::string DelayText(const WorkerFailure& root, const WorkerFailure& follower) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(root.age - follower.age);
  // A program that can't be executed is the root cause even if another worker failed before.
  if (ms.count() < 0) return "no, it failed " + std::to_string(-ms.count()) + " ms before";
  return std::to_string(ms.count()) + " ms after rank " + std::to_string(root.rank.value);
}

// `root`: null in the block of the root cause itself.
std::string Block(size_t index, const WorkerFailure& f, const WorkerFailure* root) {
  // As Python's Popen.returncode, and so torchrun, has it: minus the signal.
  int code = f.exit.signal != 0 ? -f.exit.signal : f.exit.code;
  std::string text = "[" + std::to_string(index) + "]:\n";
  text += "  time      : " + TimeText(f.wall_time_s) + "\n";
  text += "  host      : " + VisibleText(f.node_name) + "\n";
  text += "  rank      : " + std::to_string(f.rank.value) +
          " (local_rank: " + std::to_string(f.local_rank.value) + ")\n";
  text += "  exitcode  : " + std::to_string(code) + " (pid: " + std::to_string(f.pid) + ")" +
          (f.exit.signal != 0 ? "  (" + SignalName(f.exit.signal) + ")" : "") + "\n";
  text += "  error_file: " + (f.error_file.empty() ? std::string("<N/A>") : f.error_file) + "\n";
  if (root != nullptr) text += "  follower  : " + DelayText(*root, f) + "\n";
  text += "  traceback : " + Traceback(f);
  if (!f.evidence.empty()) text += "\n  cause     : " + f.evidence;
  if (f.last_step >= 0) text += "\n  last step : " + std::to_string(f.last_step);
  if (!f.core_file.empty()) text += "\n  core file : " + f.core_file;
  if (!f.stacks_file.empty()) text += "\n  stacks    : " + f.stacks_file;
  if (!f.log_path.empty()) text += "\n  log       : " + f.log_path;
  if (root == nullptr && !f.stderr_tail.empty() && !IsInTail(f)) {
    text += "\n  last lines of stderr:\n" + Indented(f.stderr_tail, "    ");
  }
  return text;
}

size_t LongestLine(std::string_view text) {
  size_t longest = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    longest = std::max(longest, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

}  // namespace

std::string FailureReport(const std::string& program, const Verdict& verdict) {
  if (verdict.failures.empty()) return "";
  std::string title = program + " FAILED";
  std::string root = Block(0, verdict.failures.front(), nullptr);
  std::string others;
  for (size_t i = 1; i < verdict.failures.size(); ++i) {
    if (!others.empty()) others += '\n';
    if (i > kMostOthers) {
      others += "  ... and " + std::to_string(verdict.failures.size() - i) + " more";
      break;
    }
    others += Block(i, verdict.failures[i], &verdict.failures.front());
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>";

  size_t longest = std::max({LongestLine(title), LongestLine(root), LongestLine(others)});
  size_t width = std::clamp(longest, kMinWidth, kMaxWidth);
  std::string border(width, '=');
  std::string section(width, '-');
  return border + "\n" + title + "\n" + section + "\nFailures:\n" + others + "\n" + section +
         "\nRoot Cause (first observed failure):\n" + root + "\n" + border;
}

std::string FailureLine(const WorkerFailure& failure) {
  std::string who = "rank " + std::to_string(failure.rank.value) + " (local rank " +
                    std::to_string(failure.local_rank.value);
  if (failure.pid > 0) who += ", pid " + std::to_string(failure.pid);
  who += ", node " + VisibleText(failure.node_name) + ")";
  if (failure.failed_to_start) return who + " could not be started: " + failure.message;
  std::string why = failure.evidence.empty() ? "" : ": " + failure.evidence;
  if (failure.only_waited) {
    return who + " only waited for other ranks and was killed, since no rank was found that hangs" +
           why;
  }
  if (failure.hung) return who + " hung and was killed" + why;
  if (failure.exit.signal == 0) {
    return who + " exited with code " + std::to_string(failure.exit.code) + why;
  }
  return who + " was ended by signal " + std::to_string(failure.exit.signal) + " (" +
         SignalName(failure.exit.signal) + ")" + (failure.exit.dumped_core ? ", core dumped" : "") +
         (why.empty() ? SenderOf(failure) : why);
}

}  // namespace muster::agent
