// Opens the sockets of one listener: every address that a host name stands for on this machine, all
// on one port. A function; thread-safe. It may wait for the resolver.
#ifndef MUSTER_RENDEZVOUS_SERVER_LISTENING_SOCKETS_H_
#define MUSTER_RENDEZVOUS_SERVER_LISTENING_SOCKETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::rendezvous {

struct ListeningSockets {
  // Non-blocking, close-on-exec, listening; the caller closes them.
  std::vector<int> fds;
  uint16_t port = 0;
};

// Empty `host`: all interfaces (IPv6 and IPv4 by one socket where the machine has both). Port 0:
// any free one. AlreadyExists: the port is in use. InvalidArgument: the host doesn't resolve or
// none of its addresses is this machine's. Unavailable: any other refusal of the system.
absl::StatusOr<ListeningSockets> OpenListeningSockets(const std::string& host, uint16_t port);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_LISTENING_SOCKETS_H_
