#include "agent/torch_store/store_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

namespace muster::agent::torch_store {
namespace {

// The kernel cuts it to its own limit (4096 by default).
constexpr int kBacklog = 65535;

// Both families' addresses lie in the larger one; the port is at the same place in both.
struct Address {
  sockaddr_in6 bytes{};

  sockaddr* any() { return reinterpret_cast<sockaddr*>(&bytes); }
  int family() const { return bytes.sin6_family; }
  socklen_t size() const {
    return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  }
};

Address AllOf(int family) {
  Address address;
  address.bytes.sin6_family = static_cast<sa_family_t>(family);
  return address;
}

std::optional<Address> LoopbackIn(const std::string& digits) {
  Address address = AllOf(AF_INET);
  auto* v4 = reinterpret_cast<sockaddr_in*>(address.any());
  if (inet_pton(AF_INET, digits.c_str(), &v4->sin_addr) == 1) {
    if (ntohl(v4->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET) return std::nullopt;
    return address;
  }
  address = AllOf(AF_INET6);
  if (inet_pton(AF_INET6, digits.c_str(), &address.bytes.sin6_addr) != 1) return std::nullopt;
  if (!IN6_IS_ADDR_LOOPBACK(&address.bytes.sin6_addr)) return std::nullopt;
  return address;
}

// A listening socket, or -1 with errno.
int Listen(Address address, uint16_t port, uint16_t* bound_port) {
  int fd = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int on = 1, off = 0;
  // Past connections in TIME_WAIT don't hinder; a listener that lives does.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // IPv6 takes IPv4 along.
  if (address.family() == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  address.bytes.sin6_port = htons(port);
  socklen_t size = address.size();
  if (bind(fd, address.any(), size) == 0 && listen(fd, kBacklog) == 0 &&
      getsockname(fd, address.any(), &size) == 0) {
    *bound_port = ntohs(address.bytes.sin6_port);
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool IsMissingFamily(int error) {
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT;
}

}  // namespace

StoreListener& StoreListener::operator=(StoreListener&& other) noexcept {
  if (this == &other) return *this;
  Close();
  fd_ = std::exchange(other.fd_, -1);
  port_ = std::exchange(other.port_, 0);
  return *this;
}

StoreListener StoreListener::Open(const std::string& address, uint16_t port, int* error) {
  StoreListener listener;
  if (std::optional<Address> loopback = LoopbackIn(address)) {
    listener.fd_ = Listen(*loopback, port, &listener.port_);
  } else {
    listener.fd_ = Listen(AllOf(AF_INET6), port, &listener.port_);
    if (listener.fd_ < 0 && IsMissingFamily(errno)) {
      listener.fd_ = Listen(AllOf(AF_INET), port, &listener.port_);
    }
  }
  *error = listener.fd_ < 0 ? errno : 0;
  return listener;
}

void StoreListener::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  port_ = 0;
}

}  // namespace muster::agent::torch_store
