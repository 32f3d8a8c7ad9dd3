#include "worker_sdk/collectives/cpu/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace muster::cpu {
namespace {

// As many as all peers of a large world that connect in one moment.
constexpr int kBacklog = 1024;
constexpr int kKeepaliveIdleS = 1, kKeepaliveIntervalS = 1, kKeepaliveProbes = 3;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> Resolve(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "the address '" + host + "' can't be used: " + gai_strerror(error));
  }
  return Addresses(list);
}

Socket OpenSocket(int family) {
  return Socket(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool BindAndListen(const Socket& socket, const sockaddr* address, socklen_t size) {
  return socket.IsOpen() && bind(socket.fd(), address, size) == 0 &&
         listen(socket.fd(), kBacklog) == 0;
}

// Numeric host of a socket address, and the port that `socket` got.
std::string EndpointOf(const addrinfo& address, const Socket& socket) {
  char host[NI_MAXHOST] = "";
  getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&bound), &size);
  char port[NI_MAXSERV] = "";
  getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port, sizeof(port),
              NI_NUMERICSERV);
  return std::string(host) + " " + port;
}

Socket ListenAnywhere(int family) {
  Socket socket = OpenSocket(family);
  bool is_listening = false;
  if (family == AF_INET6) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    is_listening = BindAndListen(socket, reinterpret_cast<sockaddr*>(&any), sizeof(any));
  } else {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    is_listening = BindAndListen(socket, reinterpret_cast<sockaddr*>(&any), sizeof(any));
  }
  if (!is_listening) socket.Close();
  return socket;
}

}  // namespace

void Socket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<Listener> Listen(const std::string& address) {
  Result<Addresses> addresses = Resolve(address, "0", AI_PASSIVE);
  if (!addresses.ok()) return addresses.status();
  int error = 0;
  for (const addrinfo* a = addresses->get(); a != nullptr; a = a->ai_next) {
    Socket socket = OpenSocket(a->ai_family);
    if (BindAndListen(socket, a->ai_addr, a->ai_addrlen)) {
      std::string endpoint = EndpointOf(*a, socket);
      return Listener{std::move(socket), std::move(endpoint)};
    }
    error = errno;
    if (error != EADDRNOTAVAIL) continue;
    socket = ListenAnywhere(a->ai_family);
    if (socket.IsOpen()) {
      std::string endpoint = EndpointOf(*a, socket);
      return Listener{std::move(socket), std::move(endpoint)};
    }
  }
  return Status(StatusCode::kUnavailable,
                "can't listen for the other ranks at '" + address + "': " + std::strerror(error));
}

Result<Socket> StartConnect(const std::string& endpoint) {
  size_t space = endpoint.find(' ');
  if (space == std::string::npos) {
    return Status(StatusCode::kInvalidArgument, "'" + endpoint + "' is no endpoint of a rank");
  }
  Result<Addresses> addresses = Resolve(endpoint.substr(0, space), endpoint.substr(space + 1),
                                        AI_NUMERICHOST | AI_NUMERICSERV);
  if (!addresses.ok()) return addresses.status();
  const addrinfo& a = **addresses;
  Socket socket = OpenSocket(a.ai_family);
  if (socket.IsOpen() &&
      (connect(socket.fd(), a.ai_addr, a.ai_addrlen) == 0 || errno == EINPROGRESS)) {
    return socket;
  }
  return Status(StatusCode::kUnavailable,
                "can't connect to " + endpoint + ": " + std::strerror(errno));
}

std::string PeerHost(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  char host[NI_MAXHOST] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&peer), size, host, sizeof(host), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "unknown host";
  }
  return host;
}

void SetDataOptions(int fd) {
  // Each can only fail on a socket that is already broken, which its first use will tell.
  auto set = [fd](int level, int option, int value) {
    (void)setsockopt(fd, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdleS);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveIntervalS);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
}

}  // namespace muster::cpu
