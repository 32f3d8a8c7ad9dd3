#include "agent/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::agent {
namespace {

// The port that the kernel gives a listener at `address`, 0 if it refuses.
uint16_t TryAt(const sockaddr* address, socklen_t size) {
  int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  uint16_t port = 0;
  sockaddr_storage bound{};
  socklen_t bound_size = sizeof bound;
  if (bind(fd, address, size) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bound_size) == 0) {
    port = bound.ss_family == AF_INET6
               ? ntohs(reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port)
               : ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  }
  close(fd);
  return port;
}

}  // namespace

uint16_t FindFreePort(const std::string& address) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  uint16_t port = 0;
  // A name is not resolved: that may take seconds, and all interfaces are right for it too.
  if (inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    port = TryAt(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  } else if (inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    port = TryAt(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
  if (port != 0) return port;
  v4.sin_addr.s_addr = htonl(INADDR_ANY);
  return TryAt(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

}  // namespace muster::agent
