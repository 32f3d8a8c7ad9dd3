#include "launcher/ssh/remote_command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/free_port.h"
#include "base/env.h"
#include "base/version.h"
#include "launcher/exit_codes.h"
#include "launcher/say.h"
#include "launcher/ssh/remote_plan.h"
#include "launcher/ssh/remote_record.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr int kAlivePauseMs = 60'000;
constexpr char kOwnExecutable[] = "/proc/self/exe";
// They would start muster from here once more; a profile may set them.
constexpr std::array kNeverHere = {"PET_HOSTS", "PET_HOSTFILE", "PET_WORKERS", "PET_WDIR",
                                   "PET_REMOTE_MUSTER"};

// Exactly so many bytes; less at the end of the input.
std::string ReadInput(size_t size) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    ssize_t count = read(STDIN_FILENO, bytes.data() + have, size - have);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    have += static_cast<size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

void SetVariables(const RemotePlan& plan) {
  for (const char* name : kNeverHere) unsetenv(name);
  for (const std::string& entry : plan.environment) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
  setenv(env::kRecordMark, plan.mark.c_str(), 1);
}

// Between fork and exec; answers with what exec left in errno.
void BecomeRun(const RemotePlan& plan, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kExitOsError);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  std::vector<char*> argv;
  static char name[] = "muster";
  static char command[] = "run";
  argv.push_back(name);
  argv.push_back(command);
  for (const std::string& word : plan.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(kOwnExecutable, argv.data());
}

// One child, its signals, and the launching side's.
class Supervisor {
 public:
  Supervisor() {
    sigemptyset(&taken_);
    // Whoever ignored it when we were started would have the kernel reap the child unseen.
    std::signal(SIGCHLD, SIG_DFL);
    for (int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&taken_, number);
    sigprocmask(SIG_BLOCK, &taken_, nullptr);
    signal_fd_ = signalfd(-1, &taken_, SFD_CLOEXEC);
  }

  // Returns the child's exit code, as a shell's.
  int Run(pid_t child, const std::string& mark) {
    child_ = child;
    while (!code_.has_value()) {
      pollfd fds[] = {{.fd = signal_fd_, .events = POLLIN, .revents = 0},
                      {.fd = input_ended_ ? -1 : STDIN_FILENO, .events = POLLIN, .revents = 0}};
      const int ready = poll(fds, 2, kAlivePauseMs);
      if (ready < 0) continue;
      // Where nobody has anything to say for hours, neither side's kernel would see that a
      // connection is dead: a write that isn't acknowledged tells it.
      if (ready == 0) Print(EncodeRecord(mark, {RecordKind::kAlive, ""}));
      if (fds[0].revents != 0) TakeOwnSignal();
      if (fds[1].revents != 0 && !code_.has_value()) TakeInput();
    }
    return *code_;
  }

 private:
  void TakeOwnSignal() {
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) return;
    if (info.ssi_signo != SIGCHLD) {
      TellToEnd(static_cast<int>(info.ssi_signo));
      return;
    }
    int status = 0;
    if (waitpid(child_, &status, WNOHANG) != child_) return;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // The end of the launching side, or of ssh, may come both as a signal and as the end of the
  // input; the second one would be taken for haste.
  void TellToEnd(int number) {
    if (!std::exchange(is_told_to_end_, true)) kill(child_, number);
  }

  void TakeInput() {
    std::array<char, 4096> bytes;
    ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
      input_ended_ = true;
      TellToEnd(SIGTERM);
      return;
    }
    received_.append(bytes.data(), static_cast<size_t>(count));
    while (std::optional<int> number = TakeSignal(received_)) kill(child_, *number);
  }

  sigset_t taken_;
  int signal_fd_ = -1;
  pid_t child_ = -1;
  bool input_ended_ = false;
  bool is_told_to_end_ = false;
  std::string received_;
  std::optional<int> code_;
};

int End(const RemotePlan& plan, int code) {
  [[maybe_unused]] bool is_written =
      Print(EncodeRecord(plan.mark, {RecordKind::kEnded, std::to_string(code)}));
  return code;
}

int Fail(const RemotePlan& plan, int code, const std::string& problem) {
  SayProblem(problem);
  return End(plan, code);
}

}  // namespace

int RemoteCommand(std::span<const std::string> words) {
  std::signal(SIGPIPE, SIG_IGN);
  if (!words.empty() || isatty(STDIN_FILENO) != 0) {
    Say(std::string(PlanSize("").status().message()));
    return kExitUsage;
  }
  if (!Print(EncodeGreeting({.version = kVersion, .port = agent::FindFreePort()}))) {
    return kExitUnavailable;
  }
  const std::string header = ReadInput(kPlanHeaderBytes);
  // The launching side has given up before the job began.
  if (header.empty()) return kExitUnavailable;
  absl::StatusOr<size_t> size = PlanSize(header);
  const std::string bytes = size.ok() ? ReadInput(*size) : "";
  // The connection was lost on the way; fields may be missing, and nobody is there to be told.
  if (size.ok() && bytes.size() < *size) return kExitUnavailable;
  absl::StatusOr<RemotePlan> plan =
      size.ok() ? DecodeRemotePlan(bytes) : absl::StatusOr<RemotePlan>(size.status());
  if (!plan.ok()) {
    Say(std::string(plan.status().message()));
    return kExitUsage;
  }
  SayAsRecords(plan->mark);
  if (chdir(plan->folder.c_str()) != 0) {
    return Fail(*plan, kExitUsage,
                Cat("the folder ", plan->folder, " can't be entered: ", std::strerror(errno),
                    "; make it there, or name another one with --wdir"));
  }
  setenv("PWD", plan->folder.c_str(), 1);
  SetVariables(*plan);
  Supervisor supervisor;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    BecomeRun(*plan, parent);
    const bool is_too_long = errno == E2BIG;
    SayProblem(Cat("`muster run` can't be started: ", std::strerror(errno),
                   is_too_long ? "; shorten the arguments or the environment" : ""));
    _exit(kExitOsError);
  }
  if (child < 0) {
    return Fail(*plan, kExitOsError,
                Cat("`muster run` can't be started: ", std::strerror(errno),
                    "; raise the limit of processes"));
  }
  return End(*plan, supervisor.Run(child, plan->mark));
}

}  // namespace muster::launcher
