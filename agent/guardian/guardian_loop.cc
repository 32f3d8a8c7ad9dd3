#include "agent/guardian/guardian_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace muster::agent::guardian {
namespace {

int OpenChildSignals() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

WorkerExit ExitOf(int status) {
  WorkerExit exit;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
    exit.dumped_core = WCOREDUMP(status);
  } else {
    exit.code = WEXITSTATUS(status);
  }
  return exit;
}

}  // namespace

GuardianLoop::GuardianLoop(const Options& options)
    : channel_(options.socket),
      dev_null_(open("/dev/null", O_RDWR | O_CLOEXEC)),
      child_signals_(OpenChildSignals()),
      // Where pidfds are refused (-1), the end of the socket alone tells.
      agent_pidfd_(static_cast<int>(syscall(SYS_pidfd_open, options.agent_pid, 0))),
      timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
  image_.ignores_child_signal = options.ignores_child_signal;
}

void GuardianLoop::Run() {
  while (true) {
    Wait();
    TakeFrames();
    TakeExecResults();
    TakePreload();
    Reap();
    if (SystemClock().Now() >= machine_.NextWakeup()) Step(TimePassed{});
    while (std::exchange(must_look_, false)) LookForLeft();
  }
}

void GuardianLoop::Wait() {
  itimerspec alarm{};
  Instant wakeup = std::min(machine_.NextWakeup(), preloaded_.next_wakeup());
  if (!wakeup.IsNever()) {
    // Zero would turn the timer off.
    int64_t ns = std::max<int64_t>(wakeup.since_origin().count(), 1);
    alarm.it_value.tv_sec = ns / 1'000'000'000;
    alarm.it_value.tv_nsec = ns % 1'000'000'000;
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &alarm, nullptr);

  std::vector<pollfd> polled;
  short socket_events = channel_.has_backlog() ? POLLIN | POLLOUT : POLLIN;
  polled.push_back({agent_is_gone_ ? -1 : channel_.socket(), socket_events, 0});
  polled.push_back({agent_is_gone_ ? -1 : agent_pidfd_, POLLIN, 0});
  polled.push_back({child_signals_, POLLIN, 0});
  polled.push_back({timer_, POLLIN, 0});
  polled.push_back({preloaded_.socket(), POLLIN, 0});
  for (const auto& [pid, exec_pipe] : exec_pipes_) polled.push_back({exec_pipe, POLLIN, 0});
  if (poll(polled.data(), polled.size(), -1) < 0) return;

  if (polled[0].revents & POLLOUT) channel_.Flush();
  // The agent died while another process holds its socket.
  if (polled[1].revents != 0 && (polled[0].revents & POLLIN) == 0) {
    agent_is_gone_ = true;
    Step(AgentGone{});
  }
}

void GuardianLoop::TakeFrames() {
  if (agent_is_gone_) return;
  channel_.Receive();
  while (auto frame = channel_.Next()) TakeFrame(std::move(*frame));
  if (channel_.is_dead()) {
    agent_is_gone_ = true;
    Step(AgentGone{});
  }
}

void GuardianLoop::TakeFrame(Frame frame) {
  BodyReader body(frame.body);
  switch (frame.kind) {
    case FrameKind::kSpawn:
      if (preloaded_.is_loading()) {
        waiting_.push_back(std::move(frame));
      } else {
        SpawnFrom(std::move(frame));
      }
      return;
    case FrameKind::kPreload:
      PreloadFrom(body);
      return;
    case FrameKind::kStop: {
      StopAsked asked;
      asked.round = RoundId(static_cast<uint64_t>(body.Int()));
      asked.first_signal = static_cast<int>(body.Int());
      asked.grace = Duration(body.Int());
      DropWaiting();
      Step(asked);
      return;
    }
    case FrameKind::kSignal:
      SignalFrom(body);
      return;
    case FrameKind::kDeadline:
      Step(DeadlineRenewed{Instant(Duration(body.Int()))});
      return;
    case FrameKind::kFolder:
      folder_ = body.Text();
      return;
    case FrameKind::kPing:
      channel_.Send({.kind = FrameKind::kPong, .body = {}, .fds = {}});
      return;
    default:
      return;
  }
}

void GuardianLoop::SignalFrom(BodyReader& body) {
  SignalAsked asked;
  asked.signal = static_cast<int>(body.Int());
  if (!body.IsComplete()) {
    RoundId round(static_cast<uint64_t>(body.Int()));
    asked.local_rank = LocalRank(static_cast<int32_t>(body.Int()));
    // A worker of an earlier round is gone.
    if (round != machine_.round()) return;
  }
  Step(asked);
}

void GuardianLoop::SpawnFrom(Frame frame) {
  BodyReader body(frame.body);
  SpawnAsked asked;
  asked.round = RoundId(static_cast<uint64_t>(body.Int()));
  asked.local_rank = LocalRank(static_cast<int32_t>(body.Int()));
  bool has_stdout = body.Int() != 0;
  bool has_stderr = body.Int() != 0;
  // What the guardian has as its own is the agent's.
  image_.stdin_fd = body.Int() != 0 ? -1 : dev_null_;
  image_.cpus = body.Ints();
  image_.argv = body.Texts();
  image_.environment = body.Texts();
  size_t next = 0;
  auto take_fd = [&](bool has) { return has && next < frame.fds.size() ? frame.fds[next++] : -1; };
  image_.stdout_fd = take_fd(has_stdout);
  image_.stderr_fd = take_fd(has_stderr);
  Step(asked);
  for (int fd : frame.fds) close(fd);
}

void GuardianLoop::PreloadFrom(BodyReader& body) {
  WorkerImage image;
  std::string modules = body.Text();
  image.argv = body.Texts();
  image.environment = body.Texts();
  image.ignores_child_signal = image_.ignores_child_signal;
  if (body.IsComplete() && image.argv.size() > 2) preloaded_.Start(image, modules);
}

void GuardianLoop::TakePreload() {
  if (preloaded_.socket() >= 0) preloaded_.Receive();
  preloaded_.TimePassed(SystemClock().Now());
  while (!preloaded_.is_loading() && !waiting_.empty()) {
    Frame frame = std::move(waiting_.front());
    waiting_.pop_front();
    SpawnFrom(std::move(frame));
  }
  if (std::optional<std::string> why = preloaded_.TakeNews()) {
    BodyWriter body;
    body.Text(*why);
    Report(FrameKind::kPreloadLost, body);
  }
}

void GuardianLoop::DropWaiting() {
  for (const Frame& frame : waiting_) {
    for (int fd : frame.fds) close(fd);
  }
  waiting_.clear();
}

void GuardianLoop::TakeExecResults() {
  std::vector<pollfd> polled;
  std::vector<pid_t> pids;
  for (const auto& [pid, exec_pipe] : exec_pipes_) {
    polled.push_back({exec_pipe, POLLIN, 0});
    pids.push_back(pid);
  }
  if (polled.empty() || poll(polled.data(), polled.size(), 0) <= 0) return;
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) TakeExecResult(pids[i]);
  }
}

void GuardianLoop::TakeExecResult(pid_t pid) {
  auto it = exec_pipes_.find(pid);
  if (it == exec_pipes_.end()) return;
  int error = 0;
  ssize_t got = read(it->second, &error, sizeof(error));
  close(it->second);
  exec_pipes_.erase(it);
  if (got == sizeof(error)) {
    Step(ExecFailed{pid, error});
  } else {
    Step(ExecDone{pid});
  }
}

void GuardianLoop::Reap() {
  signalfd_siginfo ignored[16];
  while (read(child_signals_, ignored, sizeof(ignored)) > 0) {
  }
  while (true) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    if (preloaded_.IsItsPid(pid)) {
      preloaded_.Ended();
      TakePreload();
      continue;
    }
    TakeExecResult(pid);
    Step(ChildEnded{pid, ExitOf(status)});
  }
}

bool GuardianLoop::HasChildren() const {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

void GuardianLoop::LookForLeft() {
  LeftSeen seen;
  seen_.clear();
  // Without a child a subreaper has no descendant: the common case needs no look at /proc.
  if (HasChildren()) {
    for (const Process& process : DescendantsOf(getpid())) {
      if (preloaded_.IsItsOwn(process)) continue;
      seen.pids.push_back(process.pid);
      seen.sessions[process.pid] = process.session;
      seen_[process.pid] = process;
    }
  }
  Step(seen);
}

void GuardianLoop::Step(const Event& event) {
  for (const Effect& effect : machine_.Step(SystemClock().Now(), event)) {
    std::visit([this](const auto& e) { Perform(e); }, effect);
  }
}

void GuardianLoop::Perform(const Fork& fork) {
  if (std::optional<pid_t> pid = preloaded_.Fork(image_)) {
    Step(Forked{fork.local_rank, *pid});
    Step(ExecDone{*pid});
    return;
  }
  ForkedWorker forked = ForkWorker(image_);
  if (forked.pid < 0) {
    Step(ForkFailed{fork.local_rank, forked.error});
    return;
  }
  exec_pipes_[forked.pid] = forked.exec_pipe;
  Step(Forked{fork.local_rank, forked.pid});
}

void GuardianLoop::Perform(const SignalGroup& group) {
  auto pid = static_cast<pid_t>(group.pid);
  // Just after fork it doesn't lead a group yet.
  if (killpg(pid, group.signal) != 0) kill(pid, group.signal);
}

void GuardianLoop::Perform(const LookForLeftOvers& /*look*/) { must_look_ = true; }

void GuardianLoop::Perform(const SignalProcesses& processes) {
  for (int64_t pid : processes.pids) {
    auto seen = seen_.find(pid);
    if (seen != seen_.end()) SignalProcess(seen->second, processes.signal);
  }
}

void GuardianLoop::Report(FrameKind kind, BodyWriter& body) {
  channel_.Send({.kind = kind, .body = body.Take(), .fds = {}});
}

void GuardianLoop::Perform(const ReportStarted& report) {
  BodyWriter body;
  body.Int(static_cast<int64_t>(report.round.value)).Int(report.local_rank.value).Int(report.pid);
  Report(FrameKind::kStarted, body);
}

void GuardianLoop::Perform(const ReportFailedToStart& report) {
  BodyWriter body;
  body.Int(static_cast<int64_t>(report.round.value)).Int(report.local_rank.value).Int(report.error);
  Report(FrameKind::kFailedToStart, body);
}

void GuardianLoop::Perform(const ReportExited& report) {
  BodyWriter body;
  body.Int(static_cast<int64_t>(report.round.value)).Int(report.local_rank.value).Int(report.pid);
  body.Int(report.exit.code).Int(report.exit.signal).Int(report.exit.dumped_core ? 1 : 0);
  // It was reaped in this step. Whoever reads this may be late.
  body.Int(SystemClock().Now().since_origin().count());
  Report(FrameKind::kExited, body);
}

void GuardianLoop::Perform(const ReportLeft& report) {
  BodyWriter body;
  body.Int(static_cast<int64_t>(report.round.value)).Int(report.grace.count());
  body.Int(static_cast<int64_t>(report.pids.size()));
  for (int64_t pid : report.pids) body.Int(pid);
  Report(FrameKind::kLeft, body);
}

void GuardianLoop::Perform(const ReportGone& report) {
  BodyWriter body;
  body.Int(static_cast<int64_t>(report.round.value));
  body.Int(static_cast<int64_t>(report.unkillable.size()));
  for (int64_t pid : report.unkillable) body.Int(pid);
  Report(FrameKind::kGone, body);
}

void GuardianLoop::Perform(const Exit& /*exit*/) {
  if (!folder_.empty()) {
    // Symbolic links are removed, not followed.
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  _exit(0);
}

}  // namespace muster::agent::guardian
