// One worker's end of the channel to its agent, byte by byte, for tests. Not thread-safe but for
// Shutdown().
#ifndef MUSTER_AGENT_SERVER_RAW_CLIENT_H_
#define MUSTER_AGENT_SERVER_RAW_CLIENT_H_

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <variant>

#include "base/worker_channel.h"
#include "gtest/gtest.h"

namespace muster::agent {

class RawClient {
 public:
  explicit RawClient(const std::string& name) : socket_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(&address.sun_path[1], name.data(), name.size());
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  ~RawClient() { close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // As if the worker died: whoever waits in Next() gets nothing.
  void Shutdown() { shutdown(socket_, SHUT_RDWR); }

  void SendBytes(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      ssize_t put = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) return;
      sent += static_cast<size_t>(put);
    }
  }
  void Send(const worker_channel::Message& message) { SendBytes(worker_channel::Encode(message)); }

  // Nothing if the connection was closed, or nothing came in time.
  std::optional<worker_channel::Message> Next() {
    while (true) {
      worker_channel::Decoded decoded = worker_channel::Decode(received_);
      if (decoded.kind == worker_channel::Decoded::Kind::kMessage) {
        received_.erase(0, decoded.consumed);
        return decoded.message;
      }
      char bytes[4096];
      pollfd polled{socket_, POLLIN, 0};
      if (poll(&polled, 1, kPatienceMs) != 1) return std::nullopt;
      ssize_t got = recv(socket_, bytes, sizeof bytes, 0);
      if (got <= 0) {
        is_closed_ = true;
        return std::nullopt;
      }
      received_.append(bytes, static_cast<size_t>(got));
    }
  }

  template <class Wanted>
  Wanted Get() {
    std::optional<worker_channel::Message> message = Next();
    if (message && std::holds_alternative<Wanted>(*message)) return std::get<Wanted>(*message);
    ADD_FAILURE() << (message ? "another message" : "no message");
    return {};
  }

  // The service has closed the connection.
  bool IsClosed() {
    while (!is_closed_) {
      if (!Next() && !is_closed_) return false;
    }
    return true;
  }

 private:
  // Only a fault makes anybody wait as long.
  static constexpr int kPatienceMs = 20'000;

  int socket_;
  std::string received_;
  bool is_closed_ = false;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_SERVER_RAW_CLIENT_H_
