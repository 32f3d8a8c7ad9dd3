#include "worker_sdk/collectives/cpu/ring_all_reduce.h"

#include <algorithm>
#include <array>

namespace muster::cpu {

RingAllReduce::RingAllReduce(const Call& call, const Place& place, Buffer data)
    : Operation(call),
      place_(place),
      reduction_{call.op, call.type, place.world_size},
      data_(static_cast<std::byte*>(data.data)),
      count_(data.count),
      scratch_(std::min(kSegmentBytes, BytesOf(0).count)) {
  Normalise(sent_, true);
  Normalise(received_, false);
}

Part RingAllReduce::BytesOf(int part) const {
  Part elements = PartOf(count_, place_.world_size, part);
  size_t element = SizeOf(reduction_.type);
  return {elements.begin * element, elements.count * element};
}

Part RingAllReduce::SentPart(int turn) const {
  // While adding up, each part starts at its owner's right neighbour, so that it ends at its owner.
  int n = place_.world_size;
  int shift = AddsUp(turn) ? turn + 1 : turn - (n - 1);
  return BytesOf(((place_.rank - shift) % n + n) % n);
}

Part RingAllReduce::ReceivedPart(int turn) const {
  int n = place_.world_size;
  int shift = AddsUp(turn) ? turn + 2 : turn - (n - 1) + 1;
  return BytesOf(((place_.rank - shift) % n + n) % n);
}

void RingAllReduce::Normalise(Cursor& cursor, bool sends) const {
  while (cursor.turn < Turns()) {
    Part part = sends ? SentPart(cursor.turn) : ReceivedPart(cursor.turn);
    if (cursor.offset < part.count) return;
    ++cursor.turn;
    cursor.offset = 0;
  }
}

std::optional<Outgoing> RingAllReduce::NextFor(int peer) {
  if (peer != Right() || sent_.turn == Turns()) return std::nullopt;
  Part part = SentPart(sent_.turn);
  // What is sent in a turn was received, and reduced, in the turn before.
  size_t ready = part.count;
  int needed = sent_.turn - 1;
  if (needed >= 0 && received_.turn <= needed) {
    ready = received_.turn == needed ? received_.offset : 0;
  }
  size_t size = std::min(kSegmentBytes, part.count - sent_.offset);
  if (sent_.offset + size > ready) return std::nullopt;
  Outgoing next{0, data_ + part.begin + sent_.offset, size};
  sent_.offset += size;
  Normalise(sent_, true);
  return next;
}

bool RingAllReduce::IsAllTaken(int peer) const { return peer != Right() || sent_.turn == Turns(); }

Destination RingAllReduce::PlaceFor(int peer, uint8_t lane, size_t size) {
  if (peer != Left() || lane != 0 || received_.turn == Turns()) return {};
  Part part = ReceivedPart(received_.turn);
  if (size != std::min(kSegmentBytes, part.count - received_.offset)) return {};
  if (AddsUp(received_.turn)) return {Destination::Kind::kHere, scratch_.data()};
  return {Destination::Kind::kHere, data_ + part.begin + received_.offset};
}

void RingAllReduce::Arrived(int /*peer*/, uint8_t /*lane*/, size_t size) {
  Part part = ReceivedPart(received_.turn);
  if (AddsUp(received_.turn)) {
    std::byte* own = data_ + part.begin + received_.offset;
    Reduction reduction = reduction_;
    // The average is divided once, where the sum is complete.
    bool is_complete = received_.turn == place_.world_size - 2;
    if (reduction.op == ReduceOp::kAvg && !is_complete) reduction.op = ReduceOp::kSum;
    std::array<const std::byte*, 2> inputs = {scratch_.data(), own};
    ReduceInOrder(reduction, inputs, own, size / SizeOf(reduction.type));
  }
  received_.offset += size;
  Normalise(received_, false);
}

bool RingAllReduce::HasAllFrom(int peer) const {
  return peer != Left() || received_.turn == Turns();
}

}  // namespace muster::cpu
