// Who holds a port, for the message to a user whose port is taken. Reads /proc; thread-safe.
#ifndef MUSTER_LAUNCHER_PORT_HOLDER_H_
#define MUSTER_LAUNCHER_PORT_HOLDER_H_

#include <cstdint>
#include <string>

namespace muster::launcher {

// "process 4711 (nginx)" of the process that listens on this TCP port, or empty where that isn't
// visible: another user's process, or one in another container.
std::string HolderOfPort(uint16_t port);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_PORT_HOLDER_H_
