// PyTorch's TCPStore for the workers of one job: serves one round at a time. One thread of its own
// looks after all connections; nothing that a client does makes it wait for that client.
//
//   StoreServer server({.say = ...});
//   server.BeginRound(std::move(listener));   // empty: clients come in by Adopt() only
//   ...                                       // workers run
//   server.BeginRound(...)                    // nothing of the round before is left
//
// Owned by whoever has the port: StoreHost (a port for each round), or `muster run` where the
// rendezvous' port is shared. Adopt() may be called from any thread, the rest from one at a time.
#ifndef MUSTER_AGENT_TORCH_STORE_STORE_SERVER_H_
#define MUSTER_AGENT_TORCH_STORE_STORE_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "agent/torch_store/store_listener.h"
#include "agent/torch_store/store_table.h"

namespace muster::agent::torch_store {

struct StoreServerOptions {
  // Told why a connection was closed that its client didn't close, once for each reason and round,
  // and a few times at most. Called on the server's thread; must not block. May be empty.
  std::function<void(const std::string&)> say{};
  TableLimits table{};
  // The oldest connection is kept and the newest refused.
  size_t max_connections = size_t{1} << 15;
  // Requests that aren't whole and answers that aren't read, of all connections together.
  size_t max_buffered_bytes = size_t{1} << 30;
};

class StoreServer {
 public:
  // Serves nobody yet: what is adopted before the first round is closed.
  explicit StoreServer(StoreServerOptions options);
  // Closes everything and joins the thread.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Closes all connections and the listener of the round before, forgets its keys, and lets clients
  // come in by `listener`. When it returns, all that is done; takes milliseconds.
  void BeginRound(StoreListener listener);

  // Takes over a connected socket that must not block. It belongs to the round that was begun last.
  void Adopt(int socket);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace muster::agent::torch_store

#endif  // MUSTER_AGENT_TORCH_STORE_STORE_SERVER_H_
