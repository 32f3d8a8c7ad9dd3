// Writes and finds the checkpoints of a job. Every rank has one; the calls are collective: all
// ranks make them in the same order, and all get the same outcome.
//
//   auto store = CheckpointStore::Open(*context, *group, {.directory = "/shared/run1"});
//   auto loaded = (*store)->Load();
//   if (loaded.ok() && loaded->has_value()) { ...(*loaded)->CopyTo("layer1.weight",
//   MutableView(w))... }
//   ...
//   Status saved = (*store)->Save({.step = step, .tensors = {...}, .sampler = sampler.state()});
//
// A checkpoint is a directory `step-<n>.r<round>-<world id>` with one shard in safetensors format
// (replicated state: rank 0 alone writes) and `manifest.json` with sizes and hashes. It comes into
// being by the rename of a finished `….tmp`, granted by the rendezvous to the current round alone;
// so a crash at any instant leaves the older ones and no half one, and a replaced round can't
// publish. Names are never rewritten. Only rank 0 touches the directory: the others get what it
// read over the process group, so that all ranks go on from the same bytes.
//
// Borrows context, group and file system, which must outlive it. One thread at a time.
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_STORE_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/checkpoint/checkpoint_directory.h"
#include "worker_sdk/checkpoint/file_system.h"
#include "worker_sdk/checkpoint/loaded_checkpoint.h"
#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/context.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/data/distributed_sampler.h"

namespace muster {

// A tensor in the caller's memory. `shape` empty: one dimension of data.count elements.
struct NamedTensor {
  std::string name;
  ConstBuffer data;
  std::vector<uint64_t> shape = {};
};

// What Save() is given. Everything but `random_state` is the same on all ranks.
struct Snapshot {
  // Completed optimizer steps; names the checkpoint.
  int64_t step = 0;
  int64_t epoch = 0;
  // Parameters, optimizer state, hook state. Names are unique and not empty.
  std::vector<NamedTensor> tensors = {};
  std::optional<SamplerState> sampler = std::nullopt;
  // State of this rank's random numbers, at most 64 KiB of any bytes; kept for each rank.
  std::string random_state = {};
  // Anything else that is small: learning rate, loss scale.
  std::map<std::string, std::string> extras = {};
};

class CheckpointStore {
 public:
  struct Options {
    // Made if it is missing. On several nodes: storage that all of them see.
    std::string directory;
    // Newest valid checkpoints to keep, at least 1.
    int keep = 3;
    // Null: the real one.
    FileSystem* file_system = nullptr;
    // Told what is damaged or in the way, one sentence each. Null: standard error.
    std::function<void(const std::string&)> warn = nullptr;
  };

  // Prepares the directory and removes what a killed save of an earlier round left. The same status
  // on every rank: kInvalidArgument (options), kFailedPrecondition (the directory can't be made or
  // written, with path and reason), kAborted (PeerLost).
  static Result<std::unique_ptr<CheckpointStore>> Open(Context& context, ProcessGroup& group,
                                                       const Options& options);

  // Blocks until the checkpoint is durable, committed and noted by the rendezvous. Saving a step
  // again that this store has already saved does nothing. Errors leave the older checkpoints as
  // they were: kResourceExhausted (no space), kUnavailable (other I/O error), kAlreadyExists (the
  // name is taken by another), kInvalidArgument (tensor names, negative step), kAborted (the round
  // is over or a peer is lost: nothing was published, or it doesn't count).
  Status Save(const Snapshot& snapshot);

  // The newest valid checkpoint, or none if there is none at all: the one that the job committed
  // last (Context::resume()), else the newest in the directory. Damaged ones are named by a warning
  // and passed over. kDataLoss: there are checkpoints and none is valid, or the committed one is
  // nowhere to be found; kUnavailable: the directory can't be read; kAborted.
  Result<std::optional<LoadedCheckpoint>> Load();

 private:
  CheckpointStore(Context& context, ProcessGroup& group, const Options& options);

  Status Agree(Status status);
  Result<std::vector<std::string>> GatherRandomStates(const std::string& mine);
  Status SaveOnRankZero(const Snapshot& snapshot, const std::vector<std::string>& random_states);
  Result<std::optional<LoadedCheckpoint>> LoadOnRankZero();
  Result<std::optional<LoadedCheckpoint>> Share(Result<std::optional<LoadedCheckpoint>> found);

  Context& context_;
  ProcessGroup& group_;
  Options options_;
  // Rank 0 alone.
  std::unique_ptr<CheckpointDirectory> directory_;
  // Rank 0 alone: the checkpoint that the next one descends from; empty: from nothing.
  std::string parent_;
  // The newest step that this store has committed.
  std::optional<int64_t> last_saved_step_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_STORE_H_
