// PyTorch's store at the port of the rendezvous (the static layout, where nodes know one port
// only): takes the connections that don't begin like gRPC. Owned by `muster run`; thread-safe.
#ifndef MUSTER_LAUNCHER_SHARED_STORE_H_
#define MUSTER_LAUNCHER_SHARED_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "agent/torch_store/store_server.h"
#include "rendezvous/server/first_byte_listener.h"

namespace muster::launcher {

class SharedStore : public rendezvous::NonGrpcAcceptor {
 public:
  // As StoreServerOptions::say.
  explicit SharedStore(std::function<void(const std::string&)> say)
      : server_({.say = std::move(say)}) {}

  // Whatever was accepted before is closed, and the store is empty. Done when it returns.
  void BeginRound() { server_.BeginRound({}); }

  void Accept(int fd, std::optional<uint8_t>) override { server_.Adopt(fd); }

 private:
  agent::torch_store::StoreServer server_;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SHARED_STORE_H_
