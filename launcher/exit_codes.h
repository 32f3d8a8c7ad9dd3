// Exit codes that the launcher itself gives; those of a job come with its verdict. As sysexits.h.
#ifndef MUSTER_LAUNCHER_EXIT_CODES_H_
#define MUSTER_LAUNCHER_EXIT_CODES_H_

namespace muster::launcher {

// The command line, a variable or a file it names is wrong.
inline constexpr int kExitUsage = 64;
// The rendezvous can't be reached, or its port is taken.
inline constexpr int kExitUnavailable = 69;
// The operating system refused what we can't do without (a fork).
inline constexpr int kExitOsError = 71;
// A folder that we need can't be used.
inline constexpr int kExitFolder = 73;
// This node and the job disagree.
inline constexpr int kExitDisagree = 78;
// The job was stopped in order: run it again to go on.
inline constexpr int kExitRunAgain = 75;

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_EXIT_CODES_H_
