// How --hosts and the flags beside it are put into RunOptions, and which flags don't go with them.
// Pure; a host file is only named here.
#ifndef MUSTER_LAUNCHER_SSH_SSH_SETTERS_H_
#define MUSTER_LAUNCHER_SSH_SSH_SETTERS_H_

#include <span>

#include "launcher/run_setters.h"

namespace muster::launcher {

std::span<const NamedSetter> SshSetters();

// InvalidArgument: one sentence, for flags that exclude each other.
absl::Status CheckSshTogether(const RunOptions& options);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_SSH_SETTERS_H_
