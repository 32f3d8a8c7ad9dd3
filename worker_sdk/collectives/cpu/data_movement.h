// The operations that move bytes and don't compute: barrier, broadcast, all-gather, send, receive.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_DATA_MOVEMENT_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_DATA_MOVEMENT_H_

#include <vector>

#include "worker_sdk/collectives/cpu/operation.h"

namespace muster::cpu {

// Whole lanes to and from each peer: what the operations below have in common.
class LaneOperation : public Operation {
 public:
  LaneOperation(const Call& call, const Place& place);

  bool SpeaksTo(int peer) const override { return peer != place_.rank; }
  bool HearsFrom(int peer) const override { return peer != place_.rank; }
  std::optional<Outgoing> NextFor(int peer) override { return Out(peer).Next(0); }
  bool IsAllTaken(int peer) const override { return Peer(peer).out.IsAllTaken(); }
  Destination PlaceFor(int peer, uint8_t lane, size_t size) override;
  void Arrived(int peer, uint8_t lane, size_t size) override;
  bool HasAllFrom(int peer) const override { return Peer(peer).in.HasAll(); }

 protected:
  const Place& place() const { return place_; }
  OutLane& Out(int peer) { return peers_[static_cast<size_t>(peer)].out; }
  InLane& In(int peer) { return peers_[static_cast<size_t>(peer)].in; }

 private:
  struct Lanes {
    OutLane out;
    InLane in;
  };
  const Lanes& Peer(int peer) const { return peers_[static_cast<size_t>(peer)]; }

  const Place place_;
  std::vector<Lanes> peers_;
};

// Nothing but the calls: done when all ranks have made it.
class Barrier : public LaneOperation {
 public:
  using LaneOperation::LaneOperation;
};

// From the root to all directly if the data are small (one hop), else along a chain of ranks, each
// passing segments on as they come (the root sends everything once only).
class Broadcast : public LaneOperation {
 public:
  static constexpr size_t kChainFromBytes = 64u << 10;

  Broadcast(const Call& call, const Place& place, Buffer data);
  void Arrived(int peer, uint8_t lane, size_t size) override;

 private:
  int next_ = -1;  // in the chain; -1: none
};

class AllGather : public LaneOperation {
 public:
  AllGather(const Call& call, const Place& place, ConstBuffer input, Buffer output);
  std::optional<Outgoing> NextFor(int peer) override;

 private:
  // Our own slice goes to its place when the operation's turn has come and not before: an operation
  // that was started earlier may still be writing the input.
  void CopyOwnSlice();

  const ConstBuffer input_;
  std::byte* const own_slice_;
  bool is_copied_ = false;
};

class Send : public LaneOperation {
 public:
  Send(const Call& call, const Place& place, ConstBuffer data, int to);
  bool SpeaksTo(int peer) const override { return peer == to_; }
  bool HearsFrom(int /*peer*/) const override { return false; }

 private:
  const int to_;
};

class Receive : public LaneOperation {
 public:
  Receive(const Call& call, const Place& place, Buffer data, int from);
  bool SpeaksTo(int /*peer*/) const override { return false; }
  bool HearsFrom(int peer) const override { return peer == from_; }

 private:
  const int from_;
};

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_DATA_MOVEMENT_H_
