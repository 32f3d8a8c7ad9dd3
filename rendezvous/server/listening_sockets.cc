#include "rendezvous/server/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  bool IsLoopback() const {
    if (bytes.ss_family == AF_INET) {
      auto* in = reinterpret_cast<const sockaddr_in*>(&bytes);
      return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    auto* in6 = reinterpret_cast<const sockaddr_in6*>(&bytes);
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
  }
  // sin_port and sin6_port lie at the same place.
  void SetPort(uint16_t port) { reinterpret_cast<sockaddr_in*>(&bytes)->sin_port = htons(port); }
};

Address AnyAddress(int family) {
  Address any;
  any.bytes.ss_family = static_cast<sa_family_t>(family);
  any.size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  return any;
}

bool IsNumeric(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

absl::StatusOr<std::vector<Address>> Resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0)
    return absl::InvalidArgumentError(absl::StrCat("can't listen on \"", host, "\": the name ",
                                                   "doesn't resolve (", gai_strerror(error), ")"));
  std::vector<Address> addresses;
  for (addrinfo* a = found; a != nullptr && addresses.size() < 8; a = a->ai_next) {
    Address address;
    if (a->ai_addrlen > sizeof(address.bytes)) continue;
    std::memcpy(&address.bytes, a->ai_addr, a->ai_addrlen);
    address.size = a->ai_addrlen;
    bool known = std::any_of(addresses.begin(), addresses.end(), [&](const Address& other) {
      return other.size == address.size &&
             std::memcmp(&other.bytes, &address.bytes, address.size) == 0;
    });
    if (!known) addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

// A listening socket, or -1 with errno. `dual` lets an IPv6 socket take IPv4 too.
int Open(Address address, uint16_t port, bool dual) {
  int fd = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int on = 1, only_v6 = dual ? 0 : 1;
  // Past connections in TIME_WAIT don't hinder a restart; a listener that lives does (EADDRINUSE).
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.bytes.ss_family == AF_INET6)
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
  address.SetPort(port);
  // Thousands of agents may come at once: the kernel cuts the backlog to its own limit.
  if (bind(fd, reinterpret_cast<sockaddr*>(&address.bytes), address.size) == 0 &&
      listen(fd, 65535) == 0)
    return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

uint16_t PortOf(int fd) {
  Address address;
  address.size = sizeof(address.bytes);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address.bytes), &address.size);
  return ntohs(reinterpret_cast<sockaddr_in*>(&address.bytes)->sin_port);
}

absl::Status Refusal(const std::string& host, uint16_t port, int error) {
  std::string where = absl::StrCat(host.empty() ? "all interfaces" : host, " port ", port);
  if (error == EADDRINUSE)
    return absl::AlreadyExistsError(absl::StrCat("can't listen on ", where, ": it is in use"));
  if (error == EADDRNOTAVAIL)
    return absl::InvalidArgumentError(
        absl::StrCat("can't listen on ", where, ": it isn't an address of this machine"));
  return absl::UnavailableError(
      absl::StrCat("can't listen on ", where, ": ", std::strerror(error)));
}

bool IsMissingFamily(int error) {
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT;
}

absl::StatusOr<ListeningSockets> OpenAllInterfaces(const std::string& host, uint16_t port) {
  int fd = Open(AnyAddress(AF_INET6), port, /*dual=*/true);
  if (fd < 0 && IsMissingFamily(errno)) fd = Open(AnyAddress(AF_INET), port, /*dual=*/false);
  if (fd < 0) return Refusal(host, port, errno);
  return ListeningSockets{{fd}, PortOf(fd)};
}

// One try to have every address on one port; errno's value in `error` otherwise.
ListeningSockets OpenEach(const std::vector<Address>& addresses, uint16_t port, int* error) {
  ListeningSockets sockets;
  sockets.port = port;
  for (const Address& address : addresses) {
    int fd = Open(address, sockets.port, /*dual=*/false);
    if (fd >= 0) {
      sockets.fds.push_back(fd);
      sockets.port = PortOf(fd);
      continue;
    }
    *error = errno;
    // A name may stand for addresses that this machine lacks, such as ::1 without IPv6.
    if (IsMissingFamily(*error)) continue;
    for (int other : sockets.fds) close(other);
    sockets.fds.clear();
    return sockets;
  }
  return sockets;
}

}  // namespace

absl::StatusOr<ListeningSockets> OpenListeningSockets(const std::string& host, uint16_t port) {
  if (host.empty()) return OpenAllInterfaces(host, port);
  absl::StatusOr<std::vector<Address>> addresses = Resolve(host);
  if (!addresses.ok()) return addresses.status();
  bool loopback_only = std::all_of(addresses->begin(), addresses->end(),
                                   [](const Address& a) { return a.IsLoopback(); });
  if (loopback_only && host != "localhost" && !IsNumeric(host))
    return OpenAllInterfaces(host, port);
  // With port 0 the first address picks the port, which may be taken at the second: again then.
  int error = 0;
  for (int tries = port == 0 ? 16 : 1; tries > 0; --tries) {
    ListeningSockets sockets = OpenEach(*addresses, port, &error);
    if (!sockets.fds.empty()) return sockets;
    if (error != EADDRINUSE) break;
  }
  return Refusal(host, port, error);
}

}  // namespace muster::rendezvous
