// Reduce-scatter between all pairs, alone or followed by an all-gather (then: all-reduce). Rank r
// owns part r: everybody sends r that part, r reduces it in rank order, segment by segment as the
// contributions come, and passes each reduced segment on at once.
//
// Memory beyond the caller's: a window of two segments per peer. A peer that is ahead waits, and
// that can't stop the others: what it sends never depends on what it receives.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_DIRECT_REDUCE_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_DIRECT_REDUCE_H_

#include <vector>

#include "worker_sdk/collectives/cpu/operation.h"
#include "worker_sdk/collectives/cpu/reduction.h"

namespace muster::cpu {

class DirectReduce : public Operation {
 public:
  // All-reduce of `data` in place.
  DirectReduce(const Call& call, const Place& place, Buffer data);
  // Reduce-scatter of `input` into `output`.
  DirectReduce(const Call& call, const Place& place, ConstBuffer input, Buffer output);

  bool SpeaksTo(int peer) const override { return peer != place_.rank; }
  bool HearsFrom(int peer) const override { return peer != place_.rank; }
  std::optional<Outgoing> NextFor(int peer) override;
  bool IsAllTaken(int peer) const override;
  Destination PlaceFor(int peer, uint8_t lane, size_t size) override;
  void Arrived(int peer, uint8_t lane, size_t size) override;
  bool HasAllFrom(int peer) const override;

 private:
  static constexpr uint8_t kContribution = 0;
  static constexpr uint8_t kResult = 1;
  static constexpr size_t kWindowBytes = 2 * kSegmentBytes;

  struct Peer {
    OutLane contribution;  // of ours, to the part that the peer owns
    OutLane result;        // our part, reduced
    InLane result_in;      // the peer's part, reduced
    // Contributions to our part, a ring of kWindowBytes.
    std::vector<std::byte> window;
    size_t contribution_got = 0;
  };

  void AllocateWindows();
  // Reduces every segment for which all contributions are there.
  void Reduce();

  const Place place_;
  const Reduction reduction_;
  // Our own part: what we contribute to it, where it goes, and its size.
  const std::byte* own_input_ = nullptr;
  std::byte* own_output_ = nullptr;
  size_t own_bytes_ = 0;
  size_t reduced_ = 0;
  std::vector<Peer> peers_;
};

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_DIRECT_REDUCE_H_
