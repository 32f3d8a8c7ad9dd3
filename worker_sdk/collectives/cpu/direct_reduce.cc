#include "worker_sdk/collectives/cpu/direct_reduce.h"

#include <algorithm>

namespace muster::cpu {

DirectReduce::DirectReduce(const Call& call, const Place& place, Buffer data)
    : Operation(call),
      place_(place),
      reduction_{call.op, call.type, place.world_size},
      peers_(static_cast<size_t>(place.world_size)) {
  size_t element = SizeOf(data.type);
  auto* bytes = static_cast<std::byte*>(data.data);
  Part own = PartOf(data.count, place.world_size, place.rank);
  own_output_ = bytes + own.begin * element;
  own_input_ = own_output_;
  own_bytes_ = own.count * element;
  for (int r = 0; r < place.world_size; ++r) {
    if (r == place.rank) continue;
    Peer& peer = peers_[static_cast<size_t>(r)];
    Part part = PartOf(data.count, place.world_size, r);
    std::byte* at = bytes + part.begin * element;
    size_t size = part.count * element;
    peer.contribution = {at, size, size};
    peer.result = {own_output_, own_bytes_};
    peer.result_in = {at, size};
  }
  AllocateWindows();
  // Alone, there's nothing to wait for.
  Reduce();
}

DirectReduce::DirectReduce(const Call& call, const Place& place, ConstBuffer input, Buffer output)
    : Operation(call),
      place_(place),
      reduction_{call.op, call.type, place.world_size},
      peers_(static_cast<size_t>(place.world_size)) {
  const auto* bytes = static_cast<const std::byte*>(input.data);
  own_bytes_ = output.bytes();
  own_input_ = bytes + static_cast<size_t>(place.rank) * own_bytes_;
  own_output_ = static_cast<std::byte*>(output.data);
  for (int r = 0; r < place.world_size; ++r) {
    if (r == place.rank) continue;
    peers_[static_cast<size_t>(r)].contribution = {bytes + static_cast<size_t>(r) * own_bytes_,
                                                   own_bytes_, own_bytes_};
  }
  AllocateWindows();
  // Alone, there's nothing to wait for.
  Reduce();
}

void DirectReduce::AllocateWindows() {
  for (int r = 0; r < place_.world_size; ++r) {
    if (r == place_.rank) continue;
    peers_[static_cast<size_t>(r)].window.resize(std::min(own_bytes_, kWindowBytes));
  }
}

std::optional<Outgoing> DirectReduce::NextFor(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  // Results first: they end the operation for the peer, and there's at most a window of them.
  if (auto next = p.result.Next(kResult)) return next;
  return p.contribution.Next(kContribution);
}

bool DirectReduce::IsAllTaken(int peer) const {
  const Peer& p = peers_[static_cast<size_t>(peer)];
  return p.contribution.IsAllTaken() && p.result.IsAllTaken();
}

Destination DirectReduce::PlaceFor(int peer, uint8_t lane, size_t size) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (lane == kResult) return p.result_in.PlaceFor(size);
  // A contribution is cut into whole segments and a rest, so that one never wraps around.
  size_t expected = std::min(kSegmentBytes, own_bytes_ - p.contribution_got);
  if (lane != kContribution || size != expected) return {};
  if (p.contribution_got + size - reduced_ > p.window.size()) {
    return {Destination::Kind::kLater, nullptr};
  }
  return {Destination::Kind::kHere, p.window.data() + p.contribution_got % kWindowBytes};
}

void DirectReduce::Arrived(int peer, uint8_t lane, size_t size) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (lane == kResult) {
    p.result_in.got += size;
    return;
  }
  p.contribution_got += size;
  Reduce();
}

bool DirectReduce::HasAllFrom(int peer) const {
  const Peer& p = peers_[static_cast<size_t>(peer)];
  return p.contribution_got == own_bytes_ && p.result_in.HasAll();
}

void DirectReduce::Reduce() {
  while (reduced_ < own_bytes_) {
    size_t size = std::min(kSegmentBytes, own_bytes_ - reduced_);
    std::vector<const std::byte*> inputs;
    inputs.reserve(peers_.size());
    for (int r = 0; r < place_.world_size; ++r) {
      const Peer& p = peers_[static_cast<size_t>(r)];
      if (r == place_.rank) {
        inputs.push_back(own_input_ + reduced_);
      } else if (p.contribution_got >= reduced_ + size) {
        inputs.push_back(p.window.data() + reduced_ % kWindowBytes);
      } else {
        return;
      }
    }
    ReduceInOrder(reduction_, inputs, own_output_ + reduced_, size / SizeOf(reduction_.type));
    reduced_ += size;
    for (Peer& p : peers_) {
      if (p.result.total != 0) p.result.ready = reduced_;
    }
  }
}

}  // namespace muster::cpu
