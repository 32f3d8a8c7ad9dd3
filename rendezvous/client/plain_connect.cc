#include "rendezvous/client/plain_connect.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace muster::rendezvous {
namespace {

using SteadyClock = std::chrono::steady_clock;

// 0, or why the connection isn't open; ETIMEDOUT when it isn't by `end`.
int Finish(int fd, SteadyClock::time_point end) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now()).count();
    pollfd polled{fd, POLLOUT, 0};
    int ready = poll(&polled, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
  }
}

// A port that the kernel may give to a connection can be given to this very one, which then meets
// itself: nobody listens.
bool MeetsItself(int fd) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof(here), there_size = sizeof(there);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) == 0 &&
         here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

ConnectAnswer Try(const addrinfo& target, SteadyClock::time_point end) {
  int fd = socket(target.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return ConnectAnswer::kNothing;
  // Dropped by a reset, so that no port is kept from a listener that is to come.
  linger none{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  int error = connect(fd, target.ai_addr, target.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) error = Finish(fd, end);
  ConnectAnswer answer = ConnectAnswer::kNothing;
  if (error == ECONNREFUSED || (error == 0 && MeetsItself(fd))) {
    answer = ConnectAnswer::kRefused;
  } else if (error == 0) {
    answer = ConnectAnswer::kAccepted;
  }
  close(fd);
  return answer;
}

}  // namespace

ConnectAnswer PlainConnect(const std::string& address, uint16_t port, Duration timeout) {
  const auto end = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(timeout);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return ConnectAnswer::kNothing;
  }
  ConnectAnswer answer = Try(*found, end);
  freeaddrinfo(found);
  return answer;
}

}  // namespace muster::rendezvous
