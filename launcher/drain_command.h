// `muster drain`: lets a node leave its jobs, after a checkpoint where they can make one.
#ifndef MUSTER_LAUNCHER_DRAIN_COMMAND_H_
#define MUSTER_LAUNCHER_DRAIN_COMMAND_H_

#include <span>
#include <string>

namespace muster::launcher {

// Takes the words after "drain"; returns the exit code: 0 done, 1 no such node or job, or still
// there after --wait, 64 usage, 69 no rendezvous.
int DrainCommand(std::span<const std::string> words);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_DRAIN_COMMAND_H_
