#include "agent/guardian/init_duty.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace muster::agent::guardian {
namespace {

[[noreturn]] void ServeAsInit(pid_t program, const sigset_t& signals) {
  // Ignored, it would take the program's end away from us.
  signal(SIGCHLD, SIG_DFL);
  while (true) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    // The kernel ends whatever is left in the container when pid 1 exits.
    if (pid == program) _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    if (pid > 0) continue;
    siginfo_t info{};
    int number = sigwaitinfo(&signals, &info);
    // What the terminal sends goes to the program's group already.
    bool is_ours = number == SIGCHLD || number == SIGTTIN || number == SIGTTOU;
    if (number > 0 && !is_ours) kill(program, number);
  }
}

}  // namespace

int LeaveInitBehind() {
  if (getpid() != 1) return 0;
  sigset_t signals;
  sigset_t before;
  sigfillset(&signals);
  sigprocmask(SIG_SETMASK, &signals, &before);
  pid_t program = fork();
  if (program < 0) {
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return error;
  }
  if (program > 0) ServeAsInit(program, signals);
  // A group of its own, in the foreground: else Ctrl-C would arrive here twice, from the terminal
  // and from pid 1.
  setpgid(0, 0);
  if (isatty(STDIN_FILENO) != 0) tcsetpgrp(STDIN_FILENO, getpid());
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return 0;
}

}  // namespace muster::agent::guardian
