#include "agent/guardian/worker_fork.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "agent/guardian/descriptor_limit.h"

namespace muster::agent::guardian {
namespace {

// As execvp(3) without a PATH.
constexpr std::string_view kDefaultPath = "/bin:/usr/bin";
// Where close_range(2) doesn't exist, and no limit is set.
constexpr unsigned kMaxDescriptors = 65536;

std::vector<std::string> Candidates(const WorkerImage& image) {
  if (image.argv.empty() || image.argv[0].empty()) return {};
  const std::string& program = image.argv[0];
  if (program.find('/') != std::string::npos) return {program};
  std::string_view path = kDefaultPath;
  for (const std::string& variable : image.environment) {
    if (variable.starts_with("PATH=")) {
      path = variable;
      path.remove_prefix(5);
      break;
    }
  }
  std::vector<std::string> candidates;
  while (true) {
    size_t end = path.find(':');
    std::string& candidate = candidates.emplace_back(path.substr(0, end));
    // An empty entry is the working directory.
    if (candidate.empty()) candidate.push_back('.');
    candidate += '/';
    candidate += program;
    if (end == std::string_view::npos) return candidates;
    path.remove_prefix(end + 1);
  }
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Larger than any machine's; the plain cpu_set_t ends at 1,024.
constexpr size_t kMostProcessors = 8192;
constexpr size_t kBitsInWord = 8 * sizeof(unsigned long);

// A mask as sched_setaffinity(2) takes it; empty for none.
std::vector<unsigned long> MaskOf(const std::vector<int>& cpus) {
  std::vector<unsigned long> mask(cpus.empty() ? 0 : kMostProcessors / kBitsInWord);
  for (int cpu : cpus) {
    auto number = static_cast<size_t>(cpu);
    if (number < kMostProcessors) mask[number / kBitsInWord] |= 1UL << (number % kBitsInWord);
  }
  return mask;
}

// All that the child needs, made before fork: afterwards it makes system calls only.
struct Plan {
  std::vector<std::string> candidates;
  std::vector<char*> argv;
  std::vector<char*> environment;
  int fds[3];
  std::vector<unsigned long> cpu_mask;
  bool ignores_child_signal;
  pid_t guardian;
};

// Brings the write end of the exec pipe to 3 and closes all above.
void CloseOthers(int exec_pipe) {
  if (exec_pipe != 3) dup3(exec_pipe, 3, O_CLOEXEC);
  if (syscall(SYS_close_range, 4U, ~0U, 0U) == 0) return;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (unsigned fd = 4; fd < kMaxDescriptors && fd < limit.rlim_cur; ++fd) {
    close(static_cast<int>(fd));
  }
}

// The errno that tells a person most: a file that is there but may not be run beats "not found".
int TryToExec(const Plan& plan) {
  int error = ENOENT;
  for (const std::string& candidate : plan.candidates) {
    execve(candidate.c_str(), plan.argv.data(), plan.environment.data());
    if (errno == EACCES) {
      error = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return errno;
    } else if (plan.candidates.size() == 1) {
      error = errno;
    }
  }
  return error;
}

[[noreturn]] void BecomeWorker(const Plan& plan, int exec_pipe) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The guardian may have died before that took effect.
  if (getppid() != plan.guardian) _exit(127);
  for (int i = 0; i < 3; ++i) {
    if (plan.fds[i] >= 0) dup2(plan.fds[i], i);
  }
  CloseOthers(exec_pipe);
  if (!plan.cpu_mask.empty()) {
    syscall(SYS_sched_setaffinity, 0, plan.cpu_mask.size() * sizeof(unsigned long),
            plan.cpu_mask.data());
  }
  RestoreDescriptorLimit();
  if (plan.ignores_child_signal) signal(SIGCHLD, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int error = TryToExec(plan);
  while (write(3, &error, sizeof(error)) < 0 && errno == EINTR) {
  }
  _exit(127);
}

}  // namespace

ForkedWorker ForkWorker(const WorkerImage& image) {
  Plan plan{.candidates = Candidates(image),
            .argv = Pointers(image.argv),
            .environment = Pointers(image.environment),
            .fds = {image.stdin_fd, image.stdout_fd, image.stderr_fd},
            .cpu_mask = MaskOf(image.cpus),
            .ignores_child_signal = image.ignores_child_signal,
            .guardian = getpid()};
  ForkedWorker forked;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    forked.error = errno;
    return forked;
  }
  forked.pid = fork();
  if (forked.pid == 0) BecomeWorker(plan, ends[1]);
  forked.error = forked.pid < 0 ? errno : 0;
  close(ends[1]);
  if (forked.pid < 0) {
    close(ends[0]);
  } else {
    forked.exec_pipe = ends[0];
  }
  return forked;
}

}  // namespace muster::agent::guardian
