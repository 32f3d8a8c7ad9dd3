// `muster run`: flags to a plan, the plan to a guardian, a rendezvous where this node hosts it, and
// an agent; ends with the job's exit code. Called once, by main(), before any thread exists.
#ifndef MUSTER_LAUNCHER_RUN_COMMAND_H_
#define MUSTER_LAUNCHER_RUN_COMMAND_H_

#include <span>
#include <string>

namespace muster::launcher {

// `words` are those after `run`. Returns the exit code. Threads may be left: end the process with
// _exit().
int RunCommand(std::span<const std::string> words);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_RUN_COMMAND_H_
