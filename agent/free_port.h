// A TCP port for MASTER_PORT. Thread-safe.
#ifndef MUSTER_AGENT_FREE_PORT_H_
#define MUSTER_AGENT_FREE_PORT_H_

#include <cstdint>

namespace muster::agent {

// A port that no socket of this machine was bound to a moment ago, at any address: rank 0 usually
// listens on all of them (PyTorch's store does). 0 if the kernel has none. It is not kept: another
// process may take it before the worker does.
uint16_t FindFreePort();

}  // namespace muster::agent

#endif  // MUSTER_AGENT_FREE_PORT_H_
