// One worker's connection to its agent: bytes in and out of a socket that never blocks, framed as
// base/worker_channel.h says. Owned by WorkerService, used on its thread only.
#ifndef MUSTER_AGENT_SERVER_WORKER_CONNECTION_H_
#define MUSTER_AGENT_SERVER_WORKER_CONNECTION_H_

#include <optional>
#include <string>

#include "base/worker_channel.h"

namespace muster::agent {

class WorkerConnection {
 public:
  // Takes over `socket`, which must not block.
  explicit WorkerConnection(int socket) : socket_(socket) {}
  ~WorkerConnection();
  WorkerConnection(const WorkerConnection&) = delete;
  WorkerConnection& operator=(const WorkerConnection&) = delete;

  int socket() const { return socket_; }

  // Reads what has arrived, within a bound. False if the other end is closed or broken.
  bool Receive();
  // The next whole message. Nothing if none is there, or the bytes are malformed (is_broken()).
  std::optional<worker_channel::Message> Next();

  // Sends, or keeps what the socket doesn't take. A worker that doesn't read what it asked for, up
  // to a bound, is_broken().
  void Send(const worker_channel::Message& message);
  // To be called when the socket is writable.
  void Flush();
  bool has_unsent() const { return sent_ < unsent_.size(); }

  // Malformed or stuck: to be closed.
  bool is_broken() const { return is_broken_; }

 private:
  int socket_;
  std::string received_;
  size_t taken_ = 0;
  std::string unsent_;
  size_t sent_ = 0;
  bool is_broken_ = false;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_SERVER_WORKER_CONNECTION_H_
