#include "agent/server/worker_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace muster::agent {
namespace {

constexpr size_t kReadSize = 64 << 10;
// Answers that a worker has not taken: four of the largest.
constexpr size_t kMostUnsent = 4 * worker_channel::kMaxFrame;

}  // namespace

WorkerConnection::~WorkerConnection() { close(socket_); }

bool WorkerConnection::Receive() {
  // One read a turn: a worker that writes without end can't starve the others, and the buffer stays
  // within a frame and a read.
  std::array<char, kReadSize> bytes;
  ssize_t got = recv(socket_, bytes.data(), bytes.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  received_.append(bytes.data(), static_cast<size_t>(got));
  return true;
}

std::optional<worker_channel::Message> WorkerConnection::Next() {
  if (is_broken_) return std::nullopt;
  worker_channel::Decoded decoded =
      worker_channel::Decode(std::string_view(received_).substr(taken_));
  using Kind = worker_channel::Decoded::Kind;
  if (decoded.kind == Kind::kMessage) {
    taken_ += decoded.consumed;
    return std::move(decoded.message);
  }
  is_broken_ = decoded.kind == Kind::kMalformed;
  received_.erase(0, std::exchange(taken_, 0));
  return std::nullopt;
}

void WorkerConnection::Send(const worker_channel::Message& message) {
  if (is_broken_) return;
  if (!has_unsent()) {
    unsent_.clear();
    sent_ = 0;
  }
  unsent_ += worker_channel::Encode(message);
  Flush();
  if (unsent_.size() - sent_ > kMostUnsent) is_broken_ = true;
}

void WorkerConnection::Flush() {
  while (has_unsent()) {
    ssize_t put = send(socket_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL);
    if (put < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) is_broken_ = true;
      return;
    }
    sent_ += static_cast<size_t>(put);
  }
}

}  // namespace muster::agent
