// `muster rendezvous`: the rendezvous alone, for many jobs, until a signal ends it. Called once, by
// main(), before any thread exists.
#ifndef MUSTER_LAUNCHER_RENDEZVOUS_COMMAND_H_
#define MUSTER_LAUNCHER_RENDEZVOUS_COMMAND_H_

#include <span>
#include <string>

namespace muster::launcher {

// `words` are those after `rendezvous`. Returns the exit code.
int RendezvousCommand(std::span<const std::string> words);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_RENDEZVOUS_COMMAND_H_
