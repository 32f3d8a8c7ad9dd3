// Finds processes in /proc and signals them without ever hitting a stranger: pids are reused, so a
// process is known by its pid and start time, and checked again once it is held by a pidfd.
// Functions without state; thread-safe. A look costs one pass over /proc (about 10 us a process).
#ifndef MUSTER_AGENT_GUARDIAN_PROCESS_TREE_H_
#define MUSTER_AGENT_GUARDIAN_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::agent {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  // As in /proc/<pid>/stat: R, S, D, T (stopped), Z (zombie), ...
  char state = '?';
  // Clock ticks since boot: with the pid, it names a process for good.
  uint64_t start_time = 0;
};

// Empty if there is no such process (any more).
std::optional<Process> ReadProcess(pid_t pid);

// All processes below `root`, without `root` and without zombies. Complete for a child subreaper:
// whatever its descendants leave behind comes to it.
std::vector<Process> DescendantsOf(pid_t root);

// All processes, except zombies and the caller, whose environment at their start held
// MUSTER_WORKER_ID with a value that begins with `prefix` ("<incarnation>/<round>/"). Processes
// that the caller may not look into are left out.
std::vector<Process> ProcessesOfWorkers(std::string_view prefix);

// The processes of the session that `leader` leads or led, itself first, without zombies.
std::vector<Process> ProcessesOfSession(pid_t leader);

// Sends `signal` to exactly this process. False if it is gone, another, or not ours to signal.
bool SignalProcess(const Process& process, int signal);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_GUARDIAN_PROCESS_TREE_H_
