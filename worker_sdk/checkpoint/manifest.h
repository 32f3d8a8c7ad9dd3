// manifest.json: what a checkpoint holds and how its files are verified. One JSON object
// `{"xxh3":"<hash>","manifest":{...}}` whose hash is of the inner object's bytes as they stand, so
// that a flipped bit anywhere in the file is found. A value and two pure functions.
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_MANIFEST_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker_sdk/context/status.h"
#include "worker_sdk/data/distributed_sampler.h"

namespace muster {

struct Manifest {
  struct Tensor {
    std::string name;
    uint64_t xxh3 = 0;
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  struct Shard {
    // A name in the checkpoint's directory, without a slash.
    std::string file;
    uint64_t bytes = 0;
    // Of the whole file.
    uint64_t xxh3 = 0;
    // Of each tensor's bytes: to say which one is damaged.
    std::vector<Tensor> tensors = {};
    friend bool operator==(const Shard&, const Shard&) = default;
  };

  // The directory's name when it was published, so that a renamed copy isn't taken for another.
  std::string name;
  int64_t step = 0;
  int64_t epoch = 0;
  // One more than any checkpoint that this world found when it began: orders worlds even when a
  // new job, whose rounds begin again at 1, goes on in the same directory.
  uint64_t generation = 0;
  uint64_t round = 0;
  // Name of the checkpoint that this one descends from; empty: trained from the beginning.
  std::string parent;
  int world_size = 1;
  std::optional<SamplerState> sampler = {};
  // One for each rank, any bytes.
  std::vector<std::string> random_states = {};
  std::map<std::string, std::string> extras = {};
  std::vector<Shard> shards = {};

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

inline constexpr uint64_t kMaxManifestBytes = 64 << 20;

// The file's text. kInvalidArgument: a text in it that isn't UTF-8 (named).
Result<std::string> EncodeManifest(const Manifest& manifest);
// kDataLoss, naming `path`: damaged, or written by a newer muster.
Result<Manifest> ParseManifest(std::string_view text, const std::string& path);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_MANIFEST_H_
