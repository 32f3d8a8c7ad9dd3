// A checkpoint in memory, verified: what CheckpointStore::Load() returns. Owns its bytes; copy what
// is needed out of it and let it go. Moves, never changes.
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_LOADED_CHECKPOINT_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_LOADED_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/checkpoint/file_system.h"
#include "worker_sdk/checkpoint/manifest.h"
#include "worker_sdk/checkpoint/safetensors.h"
#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/data/distributed_sampler.h"

namespace muster {

class LoadedCheckpoint {
 public:
  // `shards[i]` are the bytes of manifest.shards[i], hashes verified. kDataLoss: not safetensors.
  static Result<LoadedCheckpoint> Create(Manifest manifest, std::vector<FileBytes> shards);

  int64_t step() const { return manifest_.step; }
  int64_t epoch() const { return manifest_.epoch; }
  const std::string& name() const { return manifest_.name; }
  // Of the world that saved it.
  int world_size() const { return manifest_.world_size; }
  const std::optional<SamplerState>& sampler() const { return manifest_.sampler; }
  const std::map<std::string, std::string>& extras() const { return manifest_.extras; }
  // What `rank` gave as Snapshot::random_state; empty for a rank that wasn't there then: derive a
  // new stream from (seed, rank, step).
  std::string random_state(int rank) const;

  std::vector<std::string> tensor_names() const;
  // Copies the tensor `name` to `into`, which must have its type and number of elements.
  // kNotFound, kInvalidArgument: both name the tensor, what is stored and what was asked for.
  Status CopyTo(const std::string& name, Buffer into) const;

  const Manifest& manifest() const { return manifest_; }
  const std::vector<FileBytes>& shards() const { return shards_; }

 private:
  struct Place {
    size_t shard = 0;
    safetensors::TensorEntry entry;
    // In the shard's bytes.
    uint64_t offset = 0;
  };

  Manifest manifest_;
  std::vector<FileBytes> shards_;
  std::map<std::string, Place> tensors_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_LOADED_CHECKPOINT_H_
