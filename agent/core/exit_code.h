// Exit codes of `muster run` when no worker is the cause (sysexits.h, where it has one). A worker
// that is the cause gives its own code.
#ifndef MUSTER_AGENT_CORE_EXIT_CODE_H_
#define MUSTER_AGENT_CORE_EXIT_CODE_H_

namespace muster::agent {

// The rendezvous can't be reached, or not any more.
inline constexpr int kExitUnreachable = 69;
// One of our own processes failed: the guardian is gone.
inline constexpr int kExitInternal = 70;
// The system lacks what a worker's process needs.
inline constexpr int kExitOsError = 71;
// A folder or file can't be written.
inline constexpr int kExitCannotCreate = 73;
// This node left the job with its progress saved, or was drained: run it again.
inline constexpr int kExitRunAgain = 75;
inline constexpr int kExitNotAuthorised = 77;
// Nodes disagree on the job.
inline constexpr int kExitDisagrees = 78;
// As a shell reports a program that can't be executed, or isn't there.
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

// What a shell reports for a process that a signal ended.
inline constexpr int ExitForSignal(int signal) { return 128 + signal; }

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_EXIT_CODE_H_
