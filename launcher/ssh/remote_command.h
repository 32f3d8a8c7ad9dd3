// `muster remote`, which people don't type: what `muster run --hosts` starts on each host. Greets
// on stdout, reads its plan from stdin, runs `muster run` as if it had been typed there, and passes
// signals on to it. The end of stdin is the end of the launching side, or of the way to it: the job
// is then stopped as by SIGTERM. Called once, by main(), before any thread exists.
#ifndef MUSTER_LAUNCHER_SSH_REMOTE_COMMAND_H_
#define MUSTER_LAUNCHER_SSH_REMOTE_COMMAND_H_

#include <span>
#include <string>

namespace muster::launcher {

// Returns the exit code: that of `muster run`.
int RemoteCommand(std::span<const std::string> words);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_REMOTE_COMMAND_H_
