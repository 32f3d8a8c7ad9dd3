// One client's connection to the store: bytes in and out of a socket that never blocks. Owned by
// StoreServer, used on its thread only.
#ifndef MUSTER_AGENT_TORCH_STORE_STORE_CONNECTION_H_
#define MUSTER_AGENT_TORCH_STORE_STORE_CONNECTION_H_

#include <cstddef>
#include <string>

#include "agent/torch_store/store_protocol.h"

namespace muster::agent::torch_store {

class StoreConnection {
 public:
  // Takes over `socket`, which must not block.
  explicit StoreConnection(int socket) : socket_(socket) {}
  ~StoreConnection();
  StoreConnection(const StoreConnection&) = delete;
  StoreConnection& operator=(const StoreConnection&) = delete;

  int socket() const { return socket_; }
  RequestReader& reader() { return reader_; }

  // Reads what has arrived, within a bound. False if the other end is closed or broken; what came
  // before that is in the reader.
  bool Receive();

  void Send(std::string bytes);
  // Sends what the socket takes. False if it is broken.
  bool Flush();

  // A client that doesn't read its answers is asked nothing more until it does.
  bool is_behind() const;
  bool has_unsent() const { return sent_ < unsent_.size(); }
  // What is kept for it, both ways.
  size_t buffered() const { return reader_.buffered() + unsent_.size() - sent_; }

 private:
  const int socket_;
  RequestReader reader_;
  std::string unsent_;
  size_t sent_ = 0;
};

}  // namespace muster::agent::torch_store

#endif  // MUSTER_AGENT_TORCH_STORE_STORE_CONNECTION_H_
