#include "agent/torch_store/store_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace muster::agent::torch_store {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
// Of one client before the others have their turn.
constexpr int kMostReadsInARow = 16;
constexpr size_t kMostUnread = size_t{1} << 20;

}  // namespace

StoreConnection::~StoreConnection() { close(socket_); }

bool StoreConnection::Receive() {
  std::array<char, kReadBytes> bytes;
  for (int i = 0; i < kMostReadsInARow; ++i) {
    const ssize_t got = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    reader_.Append(std::string_view(bytes.data(), static_cast<size_t>(got)));
    if (static_cast<size_t>(got) < bytes.size()) return true;
  }
  return true;
}

void StoreConnection::Send(std::string bytes) {
  if (!has_unsent()) {
    unsent_ = std::move(bytes);
    sent_ = 0;
  } else {
    unsent_.append(bytes);
  }
}

bool StoreConnection::Flush() {
  while (has_unsent()) {
    const ssize_t sent =
        send(socket_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += static_cast<size_t>(sent);
  }
  unsent_ = {};
  sent_ = 0;
  return true;
}

bool StoreConnection::is_behind() const { return unsent_.size() - sent_ > kMostUnread; }

}  // namespace muster::agent::torch_store
