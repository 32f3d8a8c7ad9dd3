// Forks one worker and turns it into its program. Called on the guardian's only thread; the child
// does nothing but system calls. Nothing is kept between calls.
#ifndef MUSTER_AGENT_GUARDIAN_WORKER_FORK_H_
#define MUSTER_AGENT_GUARDIAN_WORKER_FORK_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster::agent::guardian {

struct WorkerImage {
  // argv[0] is looked up on the PATH of `environment` unless it holds a slash.
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  // Stay the caller's. -1: as the guardian's own.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  // The processors it may use; empty: as the guardian. Those that aren't to be had any more are no
  // reason not to start it.
  std::vector<int> cpus;
  // SIGCHLD was ignored when muster was started; the guardian itself had to change that.
  bool ignores_child_signal = false;
};

struct ForkedWorker {
  // -1: fork failed with `error`.
  pid_t pid = -1;
  int error = 0;
  // Read end: an errno (an int) if exec failed, then end of file. Closed by the caller.
  int exec_pipe = -1;
};

// The child leads a session of its own, is killed when the guardian dies, has an empty signal mask,
// the dispositions that the guardian was started with, and no descriptor but 0, 1 and 2. All
// signals must be blocked in the caller: what is sent to the child before exec then waits for it.
ForkedWorker ForkWorker(const WorkerImage& image);

}  // namespace muster::agent::guardian

#endif  // MUSTER_AGENT_GUARDIAN_WORKER_FORK_H_
