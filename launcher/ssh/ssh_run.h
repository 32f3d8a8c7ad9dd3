// `muster run` with --hosts or --hostfile: looks up what the plan needs and runs the job. Called
// once, before any thread exists.
#ifndef MUSTER_LAUNCHER_SSH_SSH_RUN_H_
#define MUSTER_LAUNCHER_SSH_SSH_RUN_H_

#include "launcher/run_options.h"

namespace muster::launcher {

// Returns the exit code.
int RunOverSsh(const RunOptions& options);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_SSH_RUN_H_
