// What it means that a worker's process could not be made, or could not become its program: the
// program's fault, or a shortage on this machine that may be over at the next try. A function.
#ifndef MUSTER_AGENT_CORE_START_FAILURE_H_
#define MUSTER_AGENT_CORE_START_FAILURE_H_

#include <cstdint>
#include <string>

namespace muster::agent {

struct StartFailure {
  // kExitNotFound, kExitNotExecutable, or kExitOsError for a shortage.
  int exit_code = 0;
  // Names the program, the system's reason and, for a shortage, what to do.
  std::string message;
};

// `error` is errno of fork(2) or exec(3). `flaw` tells more of the program than errno can
// (agent/process/program_file.h), or is empty.
StartFailure ExplainStartFailure(const std::string& program, int error, const std::string& flaw);

// The same where the agent can't serve PyTorch's store at MASTER_PORT, so that no worker is
// started; `port` 0: none was free. `error` is the errno.
StartFailure ExplainStoreFailure(uint16_t port, int error);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_START_FAILURE_H_
