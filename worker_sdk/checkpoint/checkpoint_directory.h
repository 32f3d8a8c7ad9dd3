// The checkpoints in one directory, as rank 0 alone sees them: writes, finds, verifies, removes.
// Knows files, not ranks: CheckpointStore owns one and asks the other ranks and the rendezvous
// between the steps. One thread at a time.
//
//   Begin(name) -> WriteShard -> SealShards -> [grant] -> Publish(manifest) -> RemoveOld
//
// with Discard() instead of Publish() where the grant is refused or something fails.
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker_sdk/checkpoint/checkpoint_name.h"
#include "worker_sdk/checkpoint/file_system.h"
#include "worker_sdk/checkpoint/loaded_checkpoint.h"
#include "worker_sdk/checkpoint/manifest.h"
#include "worker_sdk/checkpoint/safetensors.h"
#include "worker_sdk/context/status.h"

namespace muster {

class CheckpointDirectory {
 public:
  using Warn = std::function<void(const std::string&)>;

  // Makes `path` (absolute) and its parents where missing, tries that it can be written, removes
  // temporary directories of other worlds than `world_id`. kFailedPrecondition, kResourceExhausted,
  // kUnavailable: says what can't be done, why, and what to do.
  static Result<std::unique_ptr<CheckpointDirectory>> Open(FileSystem& file_system,
                                                           std::string path, WorldId world_id,
                                                           Warn warn);

  // Where a published checkpoint of that name is.
  std::string PathOf(const CheckpointName& name) const { return path_ + "/" + name.ToString(); }

  // The newest checkpoint whose bytes are all as they were written: `preferred` (the committed one,
  // a name) if it is valid, else the next older, in the order (generation, round, step). A damaged
  // one is passed over with a warning. None: there are no checkpoints. kDataLoss: there are, but
  // all are damaged; or `preferred` is missing and there is no other.
  Result<std::optional<LoadedCheckpoint>> FindNewest(const std::string& preferred);

  // Of the checkpoints of this world: one more than the highest that was there at Open().
  uint64_t generation() const { return generation_; }

  // Starts `<name>.tmp`, in place of what an earlier try of this world left. kAlreadyExists: `name`
  // is published.
  Status Begin(const CheckpointName& name);
  // Writes one shard and makes it durable. `data[i]` are the bytes of layout.tensors[i].
  Result<Manifest::Shard> WriteShard(const std::string& file, const std::string& header,
                                     const safetensors::Layout& layout,
                                     const std::vector<const void*>& data);
  // The shards' names are durable.
  Status SealShards();
  // Writes the manifest and renames: on OK the checkpoint is there and durable.
  Status Publish(const Manifest& manifest);
  // Removes what Begin() started, as far as that is possible.
  void Discard();

  // Removes all checkpoints but the `keep` newest valid ones. Never removes a directory in which
  // there is anything that isn't ours. Trouble is a warning.
  void RemoveOld(int keep);

 private:
  struct Candidate {
    CheckpointName name;
    // None: the manifest is missing or damaged, `problem` says why.
    std::optional<Manifest> manifest;
    Status problem;
  };

  CheckpointDirectory(FileSystem& file_system, std::string path, Warn warn);
  Result<std::vector<Candidate>> List();
  Candidate Inspect(const CheckpointName& name);
  Result<LoadedCheckpoint> Read(const Candidate& candidate);
  bool HasItsFiles(const Candidate& candidate);
  Status RemoveTree(const std::string& name);
  void RemoveStale(WorldId world_id);

  FileSystem& file_system_;
  const std::string path_;
  const Warn warn_;
  uint64_t generation_ = 1;
  // The checkpoint that Begin() started.
  std::optional<CheckpointName> current_;
  // Names whose bytes were found damaged by this object: not valid for RemoveOld().
  std::set<std::string> damaged_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
