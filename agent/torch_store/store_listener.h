// The socket at which clients of a TCPStore come in. A function; thread-safe, never blocks.
#ifndef MUSTER_AGENT_TORCH_STORE_STORE_LISTENER_H_
#define MUSTER_AGENT_TORCH_STORE_STORE_LISTENER_H_

#include <cstdint>
#include <string>
#include <utility>

namespace muster::agent::torch_store {

// Owns a listening socket that doesn't block; connections wait in the kernel until they are
// accepted. Movable; empty after that.
class StoreListener {
 public:
  StoreListener() = default;
  ~StoreListener() { Close(); }
  StoreListener(StoreListener&& other) noexcept { *this = std::move(other); }
  StoreListener& operator=(StoreListener&& other) noexcept;

  // Port 0: any free one. Where `address` is a loopback address in digits, only that one is bound,
  // since no other node can come; else all of this machine's, since clients may know it by any
  // name. The port is exclusive. Empty with `error` (an errno) where the system refuses.
  static StoreListener Open(const std::string& address, uint16_t port, int* error);

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  uint16_t port() const { return port_; }
  void Close();

 private:
  int fd_ = -1;
  uint16_t port_ = 0;
};

}  // namespace muster::agent::torch_store

#endif  // MUSTER_AGENT_TORCH_STORE_STORE_LISTENER_H_
