#include "worker_sdk/collectives/cpu/handshake_session.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::cpu {

HandshakeSession::HandshakeSession(Socket socket, Role role, const Opening& ours,
                                   const RoundKey& key, int expected)
    : socket_(std::move(socket)),
      role_(role),
      ours_(ours),
      key_(key),
      expected_(expected),
      our_bytes_(EncodeOpening(ours)),
      is_connected_(role == Role::kAcceptor) {
  if (role == Role::kConnector) Queue(our_bytes_.data(), our_bytes_.size());
}

short HandshakeSession::events() const {
  return !is_connected_ || !outgoing_.empty() ? POLLOUT : POLLIN;
}

HandshakeSession::Outcome HandshakeSession::Refused(std::string problem) {
  problem_ = std::move(problem);
  return Outcome::kRefused;
}

HandshakeSession::Outcome HandshakeSession::GoOn() {
  if (!is_connected_) {
    pollfd fd{socket_.fd(), POLLOUT, 0};
    if (poll(&fd, 1, 0) == 0) return Outcome::kGoing;
    int error = 0;
    socklen_t size = sizeof(error);
    (void)getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Refused(std::strerror(error));
    is_connected_ = true;
  }
  Outcome outcome = Outcome::kGoing;
  if (!Flush(outcome)) return outcome;
  if (!has_opening_) {
    if (!Fill(kOpeningBytes, outcome)) return outcome;
    outcome = TakeOpening();
    if (outcome == Outcome::kRefused || !Flush(outcome)) return outcome;
  }
  if (!has_proof_) {
    if (!Fill(kProofBytes, outcome)) return outcome;
    outcome = TakeProof();
    if (outcome == Outcome::kRefused || !Flush(outcome)) return outcome;
  }
  return Outcome::kProven;
}

bool HandshakeSession::Flush(Outcome& outcome) {
  while (!outgoing_.empty()) {
    ssize_t sent = send(socket_.fd(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      outgoing_.erase(outgoing_.begin(), outgoing_.begin() + sent);
      continue;
    }
    if (errno == EINTR) continue;
    outcome = errno == EAGAIN ? Outcome::kGoing : Refused(std::strerror(errno));
    return false;
  }
  return true;
}

bool HandshakeSession::Fill(size_t size, Outcome& outcome) {
  while (incoming_.size() < size) {
    std::array<uint8_t, kOpeningBytes> bytes{};
    ssize_t got = recv(socket_.fd(), bytes.data(), size - incoming_.size(), 0);
    if (got > 0) {
      incoming_.insert(incoming_.end(), bytes.begin(), bytes.begin() + got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      outcome = Outcome::kGoing;
    } else {
      outcome = Refused(got == 0 ? "the other end closed the connection" : std::strerror(errno));
    }
    return false;
  }
  return true;
}

HandshakeSession::Outcome HandshakeSession::TakeOpening() {
  std::ranges::copy(incoming_, their_bytes_.begin());
  incoming_.clear();
  has_opening_ = true;
  std::optional<Opening> theirs = DecodeOpening(their_bytes_);
  if (!theirs) return Refused("the other end isn't a rank of this version of muster");
  std::string objection = ObjectionTo(*theirs, ours_);
  if (!objection.empty()) return Refused("the other end belongs to " + objection);
  bool is_expected =
      role_ == Role::kConnector ? theirs->rank == expected_ : theirs->rank > ours_.rank;
  if (!is_expected) {
    return Refused("the other end says it is rank " + std::to_string(theirs->rank));
  }
  rank_ = theirs->rank;
  if (role_ == Role::kAcceptor) {
    Queue(our_bytes_.data(), our_bytes_.size());
  } else {
    ProofBytes proof = ProofOf(Role::kConnector);
    Queue(proof.data(), proof.size());
  }
  return Outcome::kGoing;
}

HandshakeSession::Outcome HandshakeSession::TakeProof() {
  ProofBytes proof{};
  std::ranges::copy(incoming_, proof.begin());
  incoming_.clear();
  has_proof_ = true;
  Role prover = role_ == Role::kConnector ? Role::kAcceptor : Role::kConnector;
  if (!IsEqual(proof, ProofOf(prover))) {
    return Refused("the other end doesn't know the round's key");
  }
  if (role_ == Role::kAcceptor) {
    ProofBytes own = ProofOf(Role::kAcceptor);
    Queue(own.data(), own.size());
  }
  return Outcome::kGoing;
}

ProofBytes HandshakeSession::ProofOf(Role prover) const {
  bool is_connector = role_ == Role::kConnector;
  return MakeProof(key_, prover, is_connector ? our_bytes_ : their_bytes_,
                   is_connector ? their_bytes_ : our_bytes_);
}

}  // namespace muster::cpu
