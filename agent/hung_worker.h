// What can be seen of a worker that hangs, before it is killed: the kernel's view of each of its
// threads, and a signal to those of its processes that have a function for it (the SDK's, Python's
// faulthandler), which then show their stacks on stderr. May block on a process that is stuck in
// the kernel: not for a loop's thread. Functions without state; thread-safe.
#ifndef MUSTER_AGENT_HUNG_WORKER_H_
#define MUSTER_AGENT_HUNG_WORKER_H_

#include <cstdint>
#include <string>

namespace muster::agent {

struct HungLook {
  // Lines for a file: processes and threads with their states, system calls and kernel stacks, as
  // far as this user may see them.
  std::string stacks;
  // "is stopped by a signal (T)", of the worker's main thread.
  std::string state;
  // Some process was sent the signal, and was given time to write.
  bool was_signalled = false;
};

// How long whoever got the signal may take to write.
inline constexpr int kStackPatienceMs = 500;

// Of the session that process `pid` leads. `signal`: 0 sends none.
HungLook LookAtHungProcesses(int64_t pid, int signal);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_HUNG_WORKER_H_
