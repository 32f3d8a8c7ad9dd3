#include "agent/process/guardian_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/guardian/guardian_channel.h"
#include "agent/guardian/process_tree.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace muster::agent {
namespace {

using guardian::BodyReader;
using guardian::BodyWriter;
using guardian::Frame;
using guardian::FrameKind;
using guardian::GuardianChannel;
using std::chrono::milliseconds;
using std::chrono::seconds;

// While workers run, the guardian is asked this often whether it is alive.
constexpr Duration kPingPause = milliseconds(250);
// Silence after which a guardian that is stopped (SIGSTOP, a debugger) counts as lost, and one that
// merely doesn't answer (an overloaded machine).
constexpr Duration kStoppedPatience = milliseconds(500);
constexpr Duration kSilencePatience = seconds(10);
// How long the destructor waits for the guardian to kill and sweep: a little more than it takes.
constexpr Duration kEndPatience = seconds(15);
// How long to sweep after the guardian is lost, and the pause between two sweeps.
constexpr Duration kSweepPatience = seconds(5);
constexpr int kSweepPauseMs = 10;

bool IsStopped(pid_t pid) {
  auto process = ReadProcess(pid);
  return process && (process->state == 'T' || process->state == 't');
}

// "<incarnation>/<round>/" of "<incarnation>/<round>/<local rank>".
std::string RoundPrefix(const std::string& worker_id) {
  return worker_id.substr(0, worker_id.rfind('/') + 1);
}

int64_t Number(RoundId round) { return static_cast<int64_t>(round.value); }

// The descriptors go with the frame. Body empty: more than exec takes anywhere.
Frame SpawnFrame(RoundId round, const WorkerCommand& command) {
  Frame frame{.kind = FrameKind::kSpawn, .body = {}, .fds = {}};
  BodyWriter body;
  body.Int(Number(round)).Int(command.local_rank.value);
  body.Int(command.stdout_fd >= 0 ? 1 : 0).Int(command.stderr_fd >= 0 ? 1 : 0);
  body.Int(command.gets_input ? 1 : 0).Ints(command.cpus);
  body.Texts(command.argv).Texts(command.environment);
  frame.body = body.Take();
  if (command.stdout_fd >= 0) frame.fds.push_back(command.stdout_fd);
  if (command.stderr_fd >= 0) {
    bool is_shared = command.stderr_fd == command.stdout_fd;
    frame.fds.push_back(is_shared ? fcntl(command.stderr_fd, F_DUPFD_CLOEXEC, 0)
                                  : command.stderr_fd);
  }
  if (frame.body.size() > guardian::kMaxFrameBytes) frame.body.clear();
  return frame;
}

}  // namespace

class GuardianRunner::Session {
 public:
  Session(GuardianLink link, ProcessObserver* observer)
      : observer_(observer),
        guardian_pid_(link.pid),
        wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        channel_(link.socket),
        thread_([this] { Serve(); }) {}

  ~Session() {
    {
      base::MutexLock lock(mutex_);
      is_closing_ = true;
    }
    Wake();
    thread_.join();
    EndGuardian();
    close(wake_fd_);
  }

  void Preload(const PreloadCommand& command) {
    base::MutexLock lock(mutex_);
    BodyWriter body;
    body.Text(command.modules).Texts(command.argv).Texts(command.environment);
    Send(FrameKind::kPreload, body);
  }

  void Spawn(RoundId round, const std::vector<WorkerCommand>& workers) {
    base::MutexLock lock(mutex_);
    prefixes_.clear();
    has_round_ = true;
    for (const WorkerCommand& command : workers) {
      prefixes_.insert(RoundPrefix(command.worker_id));
      Frame frame = SpawnFrame(round, command);
      int error = is_lost_ ? ESRCH : frame.body.empty() ? E2BIG : 0;
      if (error == 0) {
        channel_.Send(std::move(frame));
        continue;
      }
      for (int fd : frame.fds) close(fd);
      LocalRank local_rank = command.local_rank;
      answers_.emplace_back(
          [=, this] { observer_->OnWorkerFailedToStart(round, local_rank, error); });
    }
    Wake();
  }

  void Stop(RoundId round, const StopOptions& options) {
    base::MutexLock lock(mutex_);
    if (is_lost_) {
      answers_.emplace_back([=, this] { observer_->OnGroupGone(round, {}); });
      Wake();
      return;
    }
    BodyWriter body;
    body.Int(Number(round)).Int(options.first_signal).Int(options.grace.count());
    Send(FrameKind::kStop, body);
  }

  void Signal(int signal) {
    base::MutexLock lock(mutex_);
    BodyWriter body;
    body.Int(signal);
    Send(FrameKind::kSignal, body);
  }

  void SignalWorker(RoundId round, LocalRank local_rank, int signal) {
    base::MutexLock lock(mutex_);
    BodyWriter body;
    body.Int(signal).Int(Number(round)).Int(local_rank.value);
    Send(FrameKind::kSignal, body);
  }

  void RenewDeadline(Instant deadline) {
    base::MutexLock lock(mutex_);
    BodyWriter body;
    body.Int(deadline.since_origin().count());
    Send(FrameKind::kDeadline, body);
  }

  void RemoveAtEnd(std::string folder) {
    base::MutexLock lock(mutex_);
    BodyWriter body;
    body.Text(folder);
    folder_ = std::move(folder);
    Send(FrameKind::kFolder, body);
  }

 private:
  void Send(FrameKind kind, BodyWriter& body) MUSTER_REQUIRES(mutex_) {
    channel_.Send({.kind = kind, .body = body.Take(), .fds = {}});
    // The thread has to wait for the socket to take the rest.
    if (channel_.has_backlog()) Wake();
  }

  void Wake() const {
    uint64_t one = 1;
    // Only fails when the counter is full, and then the thread is awake.
    [[maybe_unused]] ssize_t ignored = write(wake_fd_, &one, sizeof(one));
  }

  // The thread.
  void Serve() {
    while (true) {
      WaitForSomething();
      std::deque<std::function<void()>> answers;
      std::vector<Frame> frames;
      bool is_dead = false;
      {
        base::MutexLock lock(mutex_);
        if (is_closing_) return;
        answers.swap(answers_);
        if (!is_lost_) {
          channel_.Flush();
          channel_.Receive();
          while (auto frame = channel_.Next()) frames.push_back(std::move(*frame));
          is_dead = channel_.is_dead();
        }
      }
      for (const Frame& frame : frames) Take(frame);
      for (const auto& answer : answers) answer();
      if (is_dead) {
        LoseGuardian("it ended");
      } else {
        CheckPulse(!frames.empty());
      }
    }
  }

  void WaitForSomething() {
    pollfd polled[2] = {{wake_fd_, POLLIN, 0}, {-1, POLLIN, 0}};
    int timeout_ms = -1;
    {
      base::MutexLock lock(mutex_);
      if (!is_lost_) polled[1].fd = channel_.socket();
      if (channel_.has_backlog()) polled[1].events |= POLLOUT;
      if (has_round_ && !is_lost_) {
        timeout_ms = static_cast<int>(kPingPause / milliseconds(1));
      }
    }
    poll(polled, 2, timeout_ms);
    uint64_t count = 0;
    [[maybe_unused]] ssize_t ignored = read(wake_fd_, &count, sizeof(count));
  }

  void Take(const Frame& frame) {
    BodyReader body(frame.body);
    if (frame.kind == FrameKind::kPong) return;
    if (frame.kind == FrameKind::kPreloadLost) return observer_->OnPreloadLost(body.Text());
    RoundId round(static_cast<uint64_t>(body.Int()));
    if (frame.kind == FrameKind::kGone) {
      std::vector<int64_t> unkillable(static_cast<size_t>(body.Int()));
      for (int64_t& pid : unkillable) pid = body.Int();
      workers_.clear();
      {
        base::MutexLock lock(mutex_);
        has_round_ = false;
      }
      observer_->OnGroupGone(round, std::move(unkillable));
      return;
    }
    if (frame.kind == FrameKind::kLeft) {
      const Duration grace{body.Int()};
      std::vector<int64_t> pids(static_cast<size_t>(body.Int()));
      for (int64_t& pid : pids) pid = body.Int();
      observer_->OnLeftBehind(round, std::move(pids), grace);
      return;
    }
    LocalRank local_rank(static_cast<int32_t>(body.Int()));
    if (frame.kind == FrameKind::kFailedToStart) {
      observer_->OnWorkerFailedToStart(round, local_rank, static_cast<int>(body.Int()));
      return;
    }
    int64_t pid = body.Int();
    if (frame.kind == FrameKind::kStarted) {
      workers_.insert(static_cast<pid_t>(pid));
      observer_->OnWorkerStarted(round, local_rank, pid);
    } else if (frame.kind == FrameKind::kExited) {
      workers_.erase(static_cast<pid_t>(pid));
      WorkerExit exit;
      exit.code = static_cast<int>(body.Int());
      exit.signal = static_cast<int>(body.Int());
      exit.dumped_core = body.Int() != 0;
      Instant at{Duration(body.Int())};
      observer_->OnWorkerExited(round, local_rank, pid, exit, at);
    }
  }

  // All that has arrived is taken: silence is the guardian's, not ours (we may have been stopped).
  void CheckPulse(bool heard) {
    Instant now = SystemClock().Now();
    if (heard) unanswered_since_.reset();
    bool ask = false;
    {
      base::MutexLock lock(mutex_);
      if (is_lost_ || !has_round_) {
        unanswered_since_.reset();
        return;
      }
      ask = !unanswered_since_ && now - last_ping_ >= kPingPause;
      if (ask) channel_.Send({.kind = FrameKind::kPing, .body = {}, .fds = {}});
    }
    if (ask) {
      unanswered_since_ = now;
      last_ping_ = now;
    }
    if (!unanswered_since_ || now - *unanswered_since_ < kStoppedPatience) return;
    if (IsStopped(guardian_pid_)) {
      LoseGuardian("it was stopped by a signal");
    } else if (now - *unanswered_since_ >= kSilencePatience) {
      LoseGuardian("it does not answer");
    }
  }

  void LoseGuardian(const std::string& why) {
    std::set<std::string> prefixes;
    {
      base::MutexLock lock(mutex_);
      is_lost_ = true;
      prefixes = prefixes_;
    }
    kill(guardian_pid_, SIGKILL);
    while (waitpid(guardian_pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    guardian_is_reaped_ = true;
    SweepWithoutGuardian(prefixes);
    observer_->OnGuardianLost(why);
  }

  // The workers die with the guardian; what they forked comes to this process, a subreaper.
  void SweepWithoutGuardian(const std::set<std::string>& prefixes) {
    Instant end = SystemClock().Now() + kSweepPatience;
    std::set<pid_t> ours(workers_);
    do {
      std::vector<Process> left = LeftBehind(prefixes);
      for (const Process& process : left) {
        SignalProcess(process, SIGKILL);
        ours.insert(process.pid);
      }
      bool all_reaped = true;
      for (pid_t pid : ours) all_reaped = waitpid(pid, nullptr, WNOHANG) != 0 && all_reaped;
      if (left.empty() && all_reaped) break;
      poll(nullptr, 0, kSweepPauseMs);
    } while (SystemClock().Now() < end);
    workers_.clear();
  }

  static std::vector<Process> LeftBehind(const std::set<std::string>& prefixes) {
    std::vector<Process> left;
    for (const std::string& prefix : prefixes) {
      if (prefix.empty()) continue;
      for (const Process& process : ProcessesOfWorkers(prefix)) left.push_back(process);
    }
    // Also those that wrote over their environment. What this process itself may have started is in
    // its own session; workers and their descendants never are.
    pid_t session = getsid(0);
    for (const Process& process : DescendantsOf(getpid())) {
      if (process.session != session) left.push_back(process);
    }
    return left;
  }

  void EndGuardian() {
    base::MutexLock lock(mutex_);
    if (guardian_is_reaped_) {
      std::error_code ignored;
      if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
      return;
    }
    Instant end = SystemClock().Now() + kEndPatience;
    // What is queued (a stop, a folder) still goes out.
    while (channel_.has_backlog() && SystemClock().Now() < end) {
      pollfd writable{channel_.socket(), POLLOUT, 0};
      poll(&writable, 1, 100);
      channel_.Flush();
    }
    shutdown(channel_.socket(), SHUT_WR);
    // Stopped, it couldn't do its duty.
    kill(guardian_pid_, SIGCONT);
    // Its end of the socket closes as it exits.
    while (channel_.Receive() && SystemClock().Now() < end) {
      while (channel_.Next()) {
      }
      pollfd readable{channel_.socket(), POLLIN, 0};
      poll(&readable, 1, 100);
    }
    if (!channel_.is_dead()) kill(guardian_pid_, SIGKILL);
    while (waitpid(guardian_pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  ProcessObserver* const observer_;
  const pid_t guardian_pid_;
  const int wake_fd_;

  base::Mutex mutex_;
  GuardianChannel channel_ MUSTER_GUARDED_BY(mutex_);
  bool is_closing_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_lost_ MUSTER_GUARDED_BY(mutex_) = false;
  // From Spawn() until the group is gone: a pulse is needed.
  bool has_round_ MUSTER_GUARDED_BY(mutex_) = false;
  // How the round's processes begin their MUSTER_WORKER_ID.
  std::set<std::string> prefixes_ MUSTER_GUARDED_BY(mutex_);
  std::string folder_ MUSTER_GUARDED_BY(mutex_);
  // Calls of the observer that wait for the thread.
  std::deque<std::function<void()>> answers_ MUSTER_GUARDED_BY(mutex_);

  // The thread's own, and the destructor's once it has joined.
  std::set<pid_t> workers_;
  std::optional<Instant> unanswered_since_;
  Instant last_ping_;
  bool guardian_is_reaped_ = false;

  // Last: it uses the others.
  std::thread thread_;
};

GuardianRunner::GuardianRunner(GuardianLink link, ProcessObserver* observer)
    : session_(std::make_unique<Session>(link, observer)) {}

GuardianRunner::~GuardianRunner() = default;

void GuardianRunner::Preload(PreloadCommand command) { session_->Preload(command); }

void GuardianRunner::Spawn(RoundId round, std::vector<WorkerCommand> workers) {
  session_->Spawn(round, workers);
}

void GuardianRunner::Stop(RoundId round, StopOptions options) { session_->Stop(round, options); }

void GuardianRunner::Signal(int signal) { session_->Signal(signal); }

void GuardianRunner::SignalWorker(RoundId round, LocalRank local_rank, int signal) {
  session_->SignalWorker(round, local_rank, signal);
}

void GuardianRunner::RenewDeadline(Instant deadline) { session_->RenewDeadline(deadline); }

void GuardianRunner::RemoveAtEnd(std::string folder) { session_->RemoveAtEnd(std::move(folder)); }

}  // namespace muster::agent
