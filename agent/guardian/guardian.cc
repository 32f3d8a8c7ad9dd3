#include "agent/guardian/guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "agent/guardian/descriptor_limit.h"
#include "agent/guardian/guardian_loop.h"
#include "agent/guardian/init_duty.h"

namespace muster::agent {
namespace {

// 15 characters, the most that the kernel keeps.
constexpr char kProcessName[] = "muster-guardian";

void OpenStandardStreams() {
  // open() takes the lowest free number.
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
}

void CloseAllAbove(int last) {
  auto first = static_cast<unsigned>(last) + 1;
  if (syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (unsigned fd = first; fd < 65536 && fd < limit.rlim_cur; ++fd) close(static_cast<int>(fd));
}

// In the place of the command line, so that neither ps nor a search for the command line of
// `muster run` takes the guardian for it.
void OverwriteCommandLine() {
  char stat[4096];
  int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t got = read(fd, stat, sizeof(stat) - 1);
  close(fd);
  if (got <= 0) return;
  stat[got] = '\0';
  const char* at = std::strrchr(stat, ')');
  // Fields are counted from 1; after the name (2), arg_start and arg_end are fields 48 and 49.
  for (int field = 2; at != nullptr && field < 48; ++field) at = std::strchr(at + 1, ' ');
  uint64_t start = 0;
  uint64_t end = 0;
  if (at == nullptr || std::sscanf(at, " %" SCNu64 " %" SCNu64, &start, &end) != 2) return;
  if (start == 0 || end <= start + 1) return;
  // The kernel gives the address as a number.
  auto* text = reinterpret_cast<char*>(start);  // NOLINT(performance-no-int-to-ptr)
  std::memset(text, 0, end - start);
  std::strncpy(text, kProcessName, end - start - 1);
}

[[noreturn]] void BecomeGuardian(int socket, pid_t agent_pid) {
  // In the agent's session, but out of reach of the terminal's signals.
  setpgid(0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, kProcessName);
  OverwriteCommandLine();
  struct sigaction child {};
  sigaction(SIGCHLD, nullptr, &child);
  // Ignored, it would take the ends of children away from us.
  bool ignores_child_signal = child.sa_handler == SIG_IGN;
  signal(SIGCHLD, SIG_DFL);
  if (socket != STDERR_FILENO + 1) socket = dup3(socket, STDERR_FILENO + 1, O_CLOEXEC);
  CloseAllAbove(socket);
  guardian::GuardianLoop loop(
      {.socket = socket, .agent_pid = agent_pid, .ignores_child_signal = ignores_child_signal});
  loop.Run();
}

}  // namespace

GuardianLink StartGuardian() {
  OpenStandardStreams();
  GuardianLink link;
  link.error = guardian::LeaveInitBehind();
  if (link.error != 0) return link;
  guardian::RaiseDescriptorLimit();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    link.error = errno;
    return link;
  }
  pid_t agent_pid = getpid();
  // The guardian keeps all signals blocked for good: it ends by the end of its socket.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  link.pid = fork();
  if (link.pid == 0) {
    close(ends[0]);
    BecomeGuardian(ends[1], agent_pid);
  }
  link.error = link.pid < 0 ? errno : 0;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  if (link.pid < 0) {
    close(ends[0]);
    return link;
  }
  link.socket = ends[0];
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return link;
}

}  // namespace muster::agent
