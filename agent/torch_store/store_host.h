// Where this node's agent has a TCPStore of its own for each round in which it is group rank 0: a
// port that is offered before the round is formed, listened at from then on, and served from just
// before the workers start until the next round begins. Clients that come too early wait in the
// kernel. Owned by AgentLoop and used on its thread only; never blocks for longer than the store's
// thread takes to close what it has.
#ifndef MUSTER_AGENT_TORCH_STORE_STORE_HOST_H_
#define MUSTER_AGENT_TORCH_STORE_STORE_HOST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "agent/torch_store/store_listener.h"
#include "agent/torch_store/store_server.h"

namespace muster::agent::torch_store {

class StoreHost {
 public:
  // As StoreServerOptions::say.
  explicit StoreHost(std::function<void(const std::string&)> say);

  // The port of the next store that is opened, the same until then unless the address of this node,
  // where others reach it, has changed to one that isn't listened at. 0: the system has none.
  uint16_t Offer(const std::string& address);

  // A new round, with group rank 0 here: serves at the port that was offered, an empty store, and
  // nothing else any more. 0, or an errno where the port can't be had (any more).
  int Open(const std::string& address, uint16_t port);

  // A new round, with group rank 0 elsewhere.
  void Close();

 private:
  const std::function<void(const std::string&)> say_;
  StoreListener offered_;
  // What it was opened for.
  std::string offered_for_;
  // Why nothing is offered; 0: something is, or was.
  int offer_error_ = 0;
  // Made when first needed: most agents never are group rank 0.
  std::optional<StoreServer> server_;
};

}  // namespace muster::agent::torch_store

#endif  // MUSTER_AGENT_TORCH_STORE_STORE_HOST_H_
