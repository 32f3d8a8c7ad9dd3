#include "agent/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::agent {
namespace {

// The port that the kernel gives to all addresses of a family; IPv6 takes IPv4 along. 0 if it
// refuses.
uint16_t TryFamily(int family) {
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  int off = 0;
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  // All zeros: any address, any port. The port lies at the same place in both families.
  sockaddr_in6 address{};
  address.sin6_family = static_cast<sa_family_t>(family);
  socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  bool is_bound = bind(fd, any, size) == 0 && getsockname(fd, any, &size) == 0;
  close(fd);
  return is_bound ? ntohs(address.sin6_port) : 0;
}

}  // namespace

uint16_t FindFreePort() {
  uint16_t port = TryFamily(AF_INET6);
  return port != 0 ? port : TryFamily(AF_INET);
}

}  // namespace muster::agent
