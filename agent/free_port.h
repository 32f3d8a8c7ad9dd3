// A TCP port for MASTER_PORT. Thread-safe.
#ifndef MUSTER_AGENT_FREE_PORT_H_
#define MUSTER_AGENT_FREE_PORT_H_

#include <cstdint>
#include <string>

namespace muster::agent {

// A port that nobody listened on a moment ago, at `address` if that is an IP address of this
// machine, else on all interfaces. 0 if the kernel has none. It is not kept: another process may
// take it before the worker does.
uint16_t FindFreePort(const std::string& address);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_FREE_PORT_H_
