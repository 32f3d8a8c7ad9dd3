// The guardian: a single-threaded child of `muster run` that forks, reaps and kills the workers,
// and that outlives everything else just long enough to leave nothing behind. main() calls
// StartGuardian() before anything else (before a thread, a signal handler or gRPC exists) and gives
// the link to a GuardianRunner, which speaks to the guardian from then on and waits for its end.
// Not thread-safe: one call, at the start of the process.
#ifndef MUSTER_AGENT_GUARDIAN_GUARDIAN_H_
#define MUSTER_AGENT_GUARDIAN_GUARDIAN_H_

#include <sys/types.h>

namespace muster::agent {

// The agent's end. The guardian lives until `socket` is closed, by whatever cause.
struct GuardianLink {
  pid_t pid = -1;
  int socket = -1;
  // errno of the call that failed; `pid` is then -1 and no guardian exists.
  int error = 0;
};

// Forks the guardian. What the workers inherit is fixed here: working directory, umask, limits,
// ignored signals. Signals that the guardian could get from the terminal don't end it.
//
// Side effects on the calling process: descriptors 0, 1 and 2 are opened on /dev/null where they
// were closed, and it becomes a child subreaper, so that what a killed guardian leaves behind comes
// to it. As pid 1 (the entry point of a container) it first forks itself: pid 1 stays behind in
// this call as a plain init, which reaps orphans, passes signals on and ends with the code of the
// copy; the call returns in the copy.
GuardianLink StartGuardian();

}  // namespace muster::agent

#endif  // MUSTER_AGENT_GUARDIAN_GUARDIAN_H_
