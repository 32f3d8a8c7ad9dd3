// `muster status`: asks a rendezvous for its jobs and prints them as a table. Called by main().
#ifndef MUSTER_LAUNCHER_STATUS_COMMAND_H_
#define MUSTER_LAUNCHER_STATUS_COMMAND_H_

#include <span>
#include <string>

namespace muster::launcher {

// `words` are those after `status`. Returns the exit code: 69 if nobody answers at the endpoint.
int StatusCommand(std::span<const std::string> words);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_STATUS_COMMAND_H_
