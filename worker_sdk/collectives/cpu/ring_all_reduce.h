// All-reduce around a ring, in place: every rank receives from its left neighbour and sends to its
// right one. In world_size - 1 turns each part travels around and is added up; in as many more the
// sums travel around. Segment by segment, so that both directions of every link are busy.
//
// The order of addition of part r is r+1, r+2, ..., r: equal over ranks and runs.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_RING_ALL_REDUCE_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_RING_ALL_REDUCE_H_

#include <vector>

#include "worker_sdk/collectives/cpu/operation.h"
#include "worker_sdk/collectives/cpu/reduction.h"

namespace muster::cpu {

class RingAllReduce : public Operation {
 public:
  RingAllReduce(const Call& call, const Place& place, Buffer data);

  bool SpeaksTo(int peer) const override { return peer != place_.rank; }
  bool HearsFrom(int peer) const override { return peer != place_.rank; }
  std::optional<Outgoing> NextFor(int peer) override;
  bool IsAllTaken(int peer) const override;
  Destination PlaceFor(int peer, uint8_t lane, size_t size) override;
  void Arrived(int peer, uint8_t lane, size_t size) override;
  bool HasAllFrom(int peer) const override;

 private:
  // A segment of one turn. Turns 0 .. n-2 add up, n-1 .. 2n-3 pass sums on.
  struct Cursor {
    int turn = 0;
    size_t offset = 0;  // within the part, in bytes
  };

  int Turns() const { return 2 * (place_.world_size - 1); }
  bool AddsUp(int turn) const { return turn < place_.world_size - 1; }
  int Right() const { return (place_.rank + 1) % place_.world_size; }
  int Left() const { return (place_.rank + place_.world_size - 1) % place_.world_size; }
  // The part that this rank sends, or receives, in a turn.
  Part SentPart(int turn) const;
  Part ReceivedPart(int turn) const;
  Part BytesOf(int part) const;
  // Moves past the ends of parts, empty ones included.
  void Normalise(Cursor& cursor, bool sends) const;

  const Place place_;
  const Reduction reduction_;
  std::byte* const data_;
  const size_t count_;
  Cursor sent_;
  Cursor received_;
  std::vector<std::byte> scratch_;
};

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_RING_ALL_REDUCE_H_
