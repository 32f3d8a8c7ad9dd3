#include "worker_sdk/collectives/cpu/data_movement.h"

#include <cstring>

namespace muster::cpu {

LaneOperation::LaneOperation(const Call& call, const Place& place)
    : Operation(call), place_(place), peers_(static_cast<size_t>(place.world_size)) {}

Destination LaneOperation::PlaceFor(int peer, uint8_t lane, size_t size) {
  if (lane != 0) return {};
  return In(peer).PlaceFor(size);
}

void LaneOperation::Arrived(int peer, uint8_t /*lane*/, size_t size) { In(peer).got += size; }

Broadcast::Broadcast(const Call& call, const Place& place, Buffer data)
    : LaneOperation(call, place) {
  auto* bytes = static_cast<std::byte*>(data.data);
  size_t size = data.bytes();
  int n = place.world_size, root = call.root;
  bool is_root = place.rank == root;
  if (size < kChainFromBytes) {
    for (int r = 0; r < n; ++r) {
      if (is_root && r != root) Out(r) = {bytes, size, size};
    }
    if (!is_root) In(root) = {bytes, size};
    return;
  }
  int right = (place.rank + 1) % n, left = (place.rank + n - 1) % n;
  if (!is_root) In(left) = {bytes, size};
  if (right != root) {
    next_ = right;
    Out(right) = {bytes, size, is_root ? size : 0};
  }
}

void Broadcast::Arrived(int peer, uint8_t lane, size_t size) {
  LaneOperation::Arrived(peer, lane, size);
  if (next_ >= 0) Out(next_).ready = In(peer).got;
}

AllGather::AllGather(const Call& call, const Place& place, ConstBuffer input, Buffer output)
    : LaneOperation(call, place),
      input_(input),
      own_slice_(static_cast<std::byte*>(output.data) +
                 static_cast<size_t>(place.rank) * input.bytes()) {
  const auto* own = static_cast<const std::byte*>(input.data);
  auto* all = static_cast<std::byte*>(output.data);
  size_t size = input.bytes();
  for (int r = 0; r < place.world_size; ++r) {
    if (r == place.rank) continue;
    Out(r) = {own, size, size};
    In(r) = {all + static_cast<size_t>(r) * size, size};
  }
  // Alone, nobody will ask for anything.
  if (place.world_size == 1) CopyOwnSlice();
}

std::optional<Outgoing> AllGather::NextFor(int peer) {
  if (!is_copied_) CopyOwnSlice();
  return LaneOperation::NextFor(peer);
}

void AllGather::CopyOwnSlice() {
  is_copied_ = true;
  if (input_.count != 0) std::memmove(own_slice_, input_.data, input_.bytes());
}

Send::Send(const Call& call, const Place& place, ConstBuffer data, int to)
    : LaneOperation(call, place), to_(to) {
  Out(to) = {static_cast<const std::byte*>(data.data), data.bytes(), data.bytes()};
}

Receive::Receive(const Call& call, const Place& place, Buffer data, int from)
    : LaneOperation(call, place), from_(from) {
  In(from) = {static_cast<std::byte*>(data.data), data.bytes()};
}

}  // namespace muster::cpu
