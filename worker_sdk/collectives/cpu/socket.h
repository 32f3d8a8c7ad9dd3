// TCP sockets of the data plane: an owned descriptor, listening, and connecting without blocking.
// Not thread-safe.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_SOCKET_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_SOCKET_H_

#include <string>
#include <utility>

#include "worker_sdk/context/status.h"

namespace muster::cpu {

// Owns a descriptor and closes it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { Close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int fd() const { return fd_; }
  bool IsOpen() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

// A listening socket and how others reach it: "127.0.0.1 4711" or "fe80::1 4711".
struct Listener {
  Socket socket;
  std::string endpoint;
};

// Listens at a free port of `address` (an IP address or a name); if that isn't an address of this
// machine (a forwarded one), at all addresses. Errors: kInvalidArgument (no such address),
// kUnavailable (no socket or port).
Result<Listener> Listen(const std::string& address);

// Starts to connect; the socket becomes writable when that has ended. Errors: kInvalidArgument
// (`endpoint` isn't one), kUnavailable.
Result<Socket> StartConnect(const std::string& endpoint);

// The numeric address of a connection's other end, "unknown host" once it is broken.
std::string PeerHost(int fd);

// The options of a data connection. No delay: headers are small. Keepalive: a peer whose host is
// gone is noticed in 4 s while we wait for it. Not TCP_USER_TIMEOUT: the kernel counts it also
// while a live peer's window is closed, so a rank that is late by more (it evaluates, it saves)
// would lose its connections; a host that vanishes is noticed by the agents' lease.
void SetDataOptions(int fd);

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_SOCKET_H_
