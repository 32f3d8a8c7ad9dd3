#include "rendezvous/server/own_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::rendezvous {

bool IsOwnAddress(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return false;
  // The kernel binds a socket to what is the host's own and to nothing else; port 0 is any.
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool is_own = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return is_own;
}

}  // namespace muster::rendezvous
