#include "worker_sdk/data/distributed_sampler.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "worker_sdk/data/random_stream.h"

namespace muster {

DistributedSampler::DistributedSampler(const Options& options) : options_(options) {
  MUSTER_CHECK(options.world_size > 0);
  MUSTER_CHECK(options.rank >= 0 && options.rank < options.world_size);
  handed_out_ = completed_ = Begin(0, 0);
  Shuffle();
}

DistributedSampler::Position DistributedSampler::Begin(int64_t epoch, uint64_t samples) const {
  const uint64_t size = options_.dataset_size;
  const uint64_t world = static_cast<uint64_t>(options_.world_size);
  // The filling of a larger world may have gone past the data set's end: nothing is left then.
  const uint64_t left = samples < size ? size - samples : 0;
  const uint64_t shares = options_.drop_last ? left / world : (left + world - 1) / world;
  return {.epoch = epoch, .samples = samples, .end = samples + shares * world};
}

void DistributedSampler::Shuffle() {
  if (!options_.shuffle) return;
  order_ = RandomPermutation(options_.dataset_size, options_.seed,
                             static_cast<uint64_t>(handed_out_.epoch));
}

std::vector<uint64_t> DistributedSampler::NextBatch(uint64_t max_count) {
  MUSTER_CHECK(max_count > 0);
  const uint64_t count = std::min(max_count, remaining());
  if (count == 0) {
    handed_out_ = Begin(handed_out_.epoch + 1, 0);
    Shuffle();
    StepCompleted(0);
    return {};
  }
  const uint64_t world = static_cast<uint64_t>(options_.world_size);
  std::vector<uint64_t> batch(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t place =
        (handed_out_.samples + i * world + static_cast<uint64_t>(options_.rank)) %
        options_.dataset_size;
    batch[i] = options_.shuffle ? order_[place] : place;
  }
  handed_out_.samples += count * world;
  return batch;
}

void DistributedSampler::StepCompleted(uint64_t count) {
  const uint64_t world = static_cast<uint64_t>(options_.world_size);
  while (true) {
    const bool is_behind = completed_.epoch < handed_out_.epoch;
    const uint64_t limit = is_behind ? completed_.end : handed_out_.samples;
    const uint64_t taken = std::min(count, (limit - completed_.samples) / world);
    completed_.samples += taken * world;
    count -= taken;
    if (!is_behind || completed_.samples != completed_.end) break;
    completed_ = Begin(completed_.epoch + 1, 0);
  }
  MUSTER_CHECK(count == 0);
}

SamplerState DistributedSampler::state() const {
  return {.seed = options_.seed,
          .epoch = completed_.epoch,
          .position = completed_.samples,
          .world_size = options_.world_size,
          .dataset_size = options_.dataset_size,
          .shuffle = options_.shuffle};
}

Status DistributedSampler::Restore(const SamplerState& state) {
  if (state.dataset_size != options_.dataset_size) {
    return {StatusCode::kFailedPrecondition,
            "the sampler's state is of a data set of " + std::to_string(state.dataset_size) +
                " samples, this one has " + std::to_string(options_.dataset_size) +
                ": resume with the same data, or start anew"};
  }
  if (state.shuffle != options_.shuffle) {
    return {StatusCode::kFailedPrecondition,
            std::string("the sampler's state was taken ") + (state.shuffle ? "with" : "without") +
                " shuffle: resume with the same setting, or start anew"};
  }
  // The last share may be filled up by less than one sample for each rank.
  const bool is_possible =
      state.epoch >= 0 && state.world_size > 0 &&
      (state.position <= state.dataset_size ||
       (state.dataset_size > 0 &&
        state.position - state.dataset_size < static_cast<uint64_t>(state.world_size)));
  if (!is_possible) {
    return {StatusCode::kInvalidArgument,
            "the sampler's state can't be: epoch " + std::to_string(state.epoch) + ", position " +
                std::to_string(state.position) + " of " + std::to_string(state.dataset_size) +
                " samples, world of " + std::to_string(state.world_size)};
  }
  options_.seed = state.seed;
  handed_out_ = completed_ = Begin(state.epoch, state.position);
  Shuffle();
  return {};
}

uint64_t DistributedSampler::remaining() const {
  return (handed_out_.end - handed_out_.samples) / static_cast<uint64_t>(options_.world_size);
}

}  // namespace muster
