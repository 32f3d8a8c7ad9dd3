// The handshake on one new socket, without blocking: the bytes of handshake.h moved as the socket
// allows. Reads not one byte beyond the handshake. Owned and used by one thread.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_HANDSHAKE_SESSION_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_HANDSHAKE_SESSION_H_

#include <chrono>
#include <string>
#include <vector>

#include "base/ids.h"
#include "worker_sdk/collectives/cpu/handshake.h"
#include "worker_sdk/collectives/cpu/socket.h"

namespace muster::cpu {

class HandshakeSession {
 public:
  enum class Outcome {
    kGoing,    // poll for events()
    kProven,   // take the socket
    kRefused,  // close it; problem() says why
  };

  // `ours.nonce` is fresh. `expected` is the rank that a connector called; an acceptor expects any
  // higher rank than its own (-1).
  HandshakeSession(Socket socket, Role role, const Opening& ours, const RoundKey& key,
                   int expected);

  // Goes on as far as the socket allows.
  Outcome GoOn();

  int fd() const { return socket_.fd(); }
  Socket TakeSocket() { return std::move(socket_); }
  // POLLIN or POLLOUT.
  short events() const;
  // Of the peer, once it said so; else -1.
  int rank() const { return rank_; }
  const std::string& problem() const { return problem_; }

 private:
  Outcome Refused(std::string problem);
  // True when everything queued is sent.
  bool Flush(Outcome& outcome);
  // True when `incoming_` has `size` bytes.
  bool Fill(size_t size, Outcome& outcome);
  // Their opening, or their proof, is complete.
  Outcome TakeOpening();
  Outcome TakeProof();
  void Queue(const uint8_t* bytes, size_t size) {
    outgoing_.insert(outgoing_.end(), bytes, bytes + size);
  }
  ProofBytes ProofOf(Role prover) const;

  Socket socket_;
  const Role role_;
  const Opening ours_;
  const RoundKey key_;
  const int expected_;
  OpeningBytes our_bytes_;
  OpeningBytes their_bytes_{};
  bool is_connected_;
  bool has_opening_ = false;
  bool has_proof_ = false;
  std::vector<uint8_t> outgoing_;
  std::vector<uint8_t> incoming_;
  int rank_ = -1;
  std::string problem_;
};

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_HANDSHAKE_SESSION_H_
