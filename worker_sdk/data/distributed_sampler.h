// Which samples each rank trains on, and in which order. All ranks walk one sequence, a permutation
// of the data set that (seed, epoch) decides, and share it out like cards: sample i of the sequence
// goes to rank i mod world size. So a step of `batch` samples on each of `world` ranks uses the
// next batch * world samples of the sequence, whatever the world size.
//
//   while (true) {
//     auto batch = sampler.NextBatch(64);
//     if (batch.empty()) { ...the epoch is over; the next call begins the next one... }
//     ...forward, backward, optimizer step...
//     sampler.StepCompleted(batch.size());
//   }
//
// Two positions: what was handed out, and what counts. A sample counts when the optimizer step that
// used it has completed; state() is about those alone, so batches may be fetched ahead and nothing
// is lost or repeated after a crash. An object per rank, for one thread at a time.
#ifndef MUSTER_WORKER_SDK_DATA_DISTRIBUTED_SAMPLER_H_
#define MUSTER_WORKER_SDK_DATA_DISTRIBUTED_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "worker_sdk/context/status.h"

namespace muster {

// Where a run is in its data: the same on every rank, goes into a checkpoint.
struct SamplerState {
  uint64_t seed = 0;
  int64_t epoch = 0;
  // Samples of the epoch's sequence that completed steps have used, over all ranks.
  uint64_t position = 0;
  // What the position was counted with. The world size may differ at Restore(), the others not.
  int world_size = 1;
  uint64_t dataset_size = 0;
  bool shuffle = true;

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

class DistributedSampler {
 public:
  struct Options {
    uint64_t dataset_size = 0;
    int rank = 0;
    int world_size = 1;
    uint64_t seed = 0;
    // False: the sequence is 0, 1, 2, ... in every epoch (for evaluation).
    bool shuffle = true;
    // Every rank gets equally many samples. True: the last `size mod world` samples of the sequence
    // are left out. False: the sequence is filled up from its beginning.
    bool drop_last = false;
  };
  // Starts at epoch 0. `rank` must be in 0..world_size-1.
  explicit DistributedSampler(const Options& options);

  // The next samples of this rank: at most `max_count` (> 0), fewer at the end of an epoch, then
  // none once, which ends the epoch: the call after it begins the next. Ranks that ask alike are
  // given equally many.
  std::vector<uint64_t> NextBatch(uint64_t max_count);

  // The oldest `count` samples of this rank that were handed out and don't count yet, now do.
  // All ranks must report the same. More than were handed out is a bug of the caller.
  void StepCompleted(uint64_t count);

  SamplerState state() const;
  // Goes on where `state` was taken, on any world size: the samples left in the epoch come exactly
  // once each (filled up or cut to equal shares as ever). The seed is the state's from then on.
  // kFailedPrecondition: another data set size or another `shuffle`; kInvalidArgument: a position
  // that can't be. Nothing has changed then.
  Status Restore(const SamplerState& state);

  // Epoch of the next batch to be handed out.
  int64_t epoch() const { return handed_out_.epoch; }
  // Samples that this rank gets in the rest of that epoch.
  uint64_t remaining() const;

 private:
  struct Position {
    int64_t epoch = 0;
    uint64_t samples = 0;
    // End of the epoch's sequence: whole shares for every rank, counted from where this world
    // began.
    uint64_t end = 0;
  };
  Position Begin(int64_t epoch, uint64_t samples) const;
  void Shuffle();

  Options options_;
  Position handed_out_;
  Position completed_;
  // The permutation of epoch handed_out_.epoch; empty without shuffle.
  std::vector<uint64_t> order_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DATA_DISTRIBUTED_SAMPLER_H_
