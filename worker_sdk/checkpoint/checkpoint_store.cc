#include "worker_sdk/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include "worker_sdk/checkpoint/checkpoint_name.h"
#include "worker_sdk/checkpoint/safetensors.h"

namespace muster {
namespace {

constexpr size_t kMaxRandomState = 64 << 10;
constexpr char kOnlyShard[] = "shard-00000-of-00001.safetensors";

// A status of that code; where a peer was lost, it says which.
Status MakeStatus(StatusCode code, int lost_rank, std::string message) {
  if (code == StatusCode::kAborted) return Status::PeerLost(lost_rank, std::move(message));
  return {code, std::move(message)};
}

// The status again, with what was being done.
Status Explain(const std::string& what, const Status& status) {
  return MakeStatus(status.code(), status.lost_rank(), what + ": " + status.message());
}

Status BroadcastText(ProcessGroup& group, size_t size, std::string* text) {
  text->resize(size);
  return group.Broadcast({text->data(), text->size(), DataType::kU8}, 0).Wait();
}

Result<std::vector<safetensors::TensorEntry>> Describe(const std::vector<NamedTensor>& tensors) {
  std::vector<safetensors::TensorEntry> entries;
  for (const NamedTensor& tensor : tensors) {
    std::vector<uint64_t> shape = tensor.shape;
    if (shape.empty()) shape.push_back(tensor.data.count);
    uint64_t count = 1;
    for (uint64_t dimension : shape) count *= dimension;
    if (count != tensor.data.count) {
      return Status(StatusCode::kInvalidArgument,
                    "the shape of tensor \"" + tensor.name + "\" has " + std::to_string(count) +
                        " elements, its data " + std::to_string(tensor.data.count));
    }
    entries.push_back({.name = tensor.name,
                       .dtype = safetensors::DtypeName(tensor.data.type),
                       .shape = std::move(shape)});
  }
  return entries;
}

// The data of `layout`'s tensors, in its order.
std::vector<const void*> DataOf(const safetensors::Layout& layout,
                                const std::vector<NamedTensor>& tensors) {
  std::map<std::string_view, const void*> by_name;
  for (const NamedTensor& tensor : tensors) by_name[tensor.name] = tensor.data.data;
  std::vector<const void*> data;
  for (const safetensors::TensorEntry& entry : layout.tensors) data.push_back(by_name[entry.name]);
  return data;
}

void WarnOnStandardError(const std::string& text) {
  std::fprintf(stderr, "muster: warning: %s\n", text.c_str());
}

}  // namespace

CheckpointStore::CheckpointStore(Context& context, ProcessGroup& group, const Options& options)
    : context_(context), group_(group), options_(options) {}

Result<std::unique_ptr<CheckpointStore>> CheckpointStore::Open(Context& context,
                                                               ProcessGroup& group,
                                                               const Options& given) {
  Options options = given;
  if (options.directory.empty() || options.keep < 1) {
    return Status(StatusCode::kInvalidArgument,
                  options.keep < 1 ? "a checkpoint store keeps at least 1 checkpoint, not " +
                                         std::to_string(options.keep)
                                   : "the checkpoint directory has no name");
  }
  if (options.file_system == nullptr) options.file_system = &RealFileSystem();
  if (options.warn == nullptr) options.warn = WarnOnStandardError;
  std::unique_ptr<CheckpointStore> store(new CheckpointStore(context, group, options));
  Status opened;
  if (group.rank() == 0) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(options.directory, error);
    auto directory =
        error ? Result<std::unique_ptr<CheckpointDirectory>>(
                    Status(StatusCode::kFailedPrecondition,
                           "the checkpoint directory " + options.directory +
                               " can't be found from here: " + error.message()))
              : CheckpointDirectory::Open(*options.file_system, path.lexically_normal().string(),
                                          context.world().id, options.warn);
    opened = directory.status();
    if (directory.ok()) store->directory_ = *std::move(directory);
  }
  opened = store->Agree(std::move(opened));
  if (!opened.ok()) return opened;
  return store;
}

// Rank 0's status, on every rank.
Status CheckpointStore::Agree(Status status) {
  std::array<int64_t, 3> head = {static_cast<int64_t>(status.code()), status.lost_rank(),
                                 static_cast<int64_t>(status.message().size())};
  Status sent = group_.Broadcast(MutableView(head), 0).Wait();
  if (!sent.ok()) return sent;
  std::string message = status.message();
  if (head[2] > 0) sent = BroadcastText(group_, static_cast<size_t>(head[2]), &message);
  if (!sent.ok()) return sent;
  if (group_.rank() == 0) return status;
  return MakeStatus(static_cast<StatusCode>(head[0]), static_cast<int>(head[1]),
                    std::move(message));
}

Result<std::vector<std::string>> CheckpointStore::GatherRandomStates(const std::string& mine) {
  const auto world = static_cast<size_t>(group_.world_size());
  const std::array<int64_t, 1> size = {static_cast<int64_t>(mine.size())};
  std::vector<int64_t> sizes(world);
  Status gathered = group_.AllGather(View(size), MutableView(sizes)).Wait();
  if (!gathered.ok()) return gathered;
  const auto widest = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
  if (widest > kMaxRandomState) {
    return Status(StatusCode::kInvalidArgument, "a rank's random state has " +
                                                    std::to_string(widest) + " bytes of " +
                                                    std::to_string(kMaxRandomState));
  }
  std::vector<std::string> states(world);
  if (widest == 0) return states;
  std::vector<uint8_t> padded(mine.begin(), mine.end());
  padded.resize(widest);
  std::vector<uint8_t> all(widest * world);
  gathered = group_.AllGather(View(padded), MutableView(all)).Wait();
  if (!gathered.ok()) return gathered;
  for (size_t rank = 0; rank < world; ++rank) {
    const uint8_t* from = all.data() + rank * widest;
    states[rank].assign(from, from + sizes[rank]);
  }
  return states;
}

Status CheckpointStore::Save(const Snapshot& snapshot) {
  const Result<std::vector<std::string>> random_states = GatherRandomStates(snapshot.random_state);
  if (!random_states.ok()) return random_states.status();
  Status saved;
  if (group_.rank() == 0 && last_saved_step_ != snapshot.step) {
    const std::string parent_before = parent_;
    saved = SaveOnRankZero(snapshot, *random_states);
    directory_->Discard();
    if (saved.ok()) {
      last_saved_step_ = snapshot.step;
      directory_->RemoveOld(options_.keep);
    } else if (parent_ == parent_before) {
      saved =
          Explain("no checkpoint of step " + std::to_string(snapshot.step) + " was saved", saved);
    }
  }
  return Agree(std::move(saved));
}

Status CheckpointStore::SaveOnRankZero(const Snapshot& snapshot,
                                       const std::vector<std::string>& random_states) {
  if (snapshot.step < 0) return {StatusCode::kInvalidArgument, "the step is negative"};
  Result<std::vector<safetensors::TensorEntry>> entries = Describe(snapshot.tensors);
  if (!entries.ok()) return entries.status();
  std::string header;
  const Result<safetensors::Layout> layout = safetensors::Plan(*std::move(entries), &header);
  if (!layout.ok()) return layout.status();

  const World& world = context_.world();
  const CheckpointName name{.step = snapshot.step, .round = world.round, .world_id = world.id};
  Status done = directory_->Begin(name);
  if (!done.ok()) return done;
  Result<Manifest::Shard> shard =
      directory_->WriteShard(kOnlyShard, header, *layout, DataOf(*layout, snapshot.tensors));
  if (!shard.ok()) return shard.status();
  done = directory_->SealShards();
  if (!done.ok()) return done;

  const Commit commit{.step = snapshot.step, .directory = directory_->PathOf(name)};
  done = context_.ReportShard(commit, /*shard_count=*/1);
  if (!done.ok()) return Explain("the rendezvous didn't grant it", done);
  done = directory_->Publish({.name = name.ToString(),
                              .step = snapshot.step,
                              .epoch = snapshot.epoch,
                              .generation = directory_->generation(),
                              .round = world.round.value,
                              .parent = parent_,
                              .world_size = group_.world_size(),
                              .sampler = snapshot.sampler,
                              .random_states = random_states,
                              .extras = snapshot.extras,
                              .shards = {*std::move(shard)}});
  if (!done.ok()) return done;
  parent_ = name.ToString();
  done = context_.ReportCommit(commit);
  if (!done.ok()) {
    // Most often the round has ended right after, for a node that leaves or comes.
    return Explain("the checkpoint of step " + std::to_string(snapshot.step) +
                       " is published, but its acknowledgement didn't come",
                   done);
  }
  return done;
}

Result<std::optional<LoadedCheckpoint>> CheckpointStore::LoadOnRankZero() {
  std::string committed;
  if (context_.resume().has_value()) {
    committed = std::filesystem::path(context_.resume()->directory).filename().string();
  }
  Result<std::optional<LoadedCheckpoint>> found = directory_->FindNewest(committed);
  if (found.ok() && found->has_value()) parent_ = (*found)->name();
  return found;
}

Result<std::optional<LoadedCheckpoint>> CheckpointStore::Load() {
  if (group_.rank() == 0) return Share(LoadOnRankZero());
  return Share(std::optional<LoadedCheckpoint>());
}

// What rank 0 found, on every rank: its status, then the manifest, then the shards' bytes.
Result<std::optional<LoadedCheckpoint>> CheckpointStore::Share(
    Result<std::optional<LoadedCheckpoint>> found) {
  Status status = Agree(found.status());
  if (!status.ok()) return status;
  const bool is_root = group_.rank() == 0;
  std::string text;
  if (is_root && found->has_value()) {
    Result<std::string> encoded = EncodeManifest((*found)->manifest());
    if (encoded.ok()) text = *std::move(encoded);
  }
  std::array<int64_t, 1> size = {static_cast<int64_t>(text.size())};
  status = group_.Broadcast(MutableView(size), 0).Wait();
  if (!status.ok()) return status;
  if (size[0] == 0) return std::optional<LoadedCheckpoint>();
  status = BroadcastText(group_, static_cast<size_t>(size[0]), &text);
  if (!status.ok()) return status;
  Result<Manifest> manifest = ParseManifest(text, "the manifest sent by rank 0");
  if (!manifest.ok()) return manifest.status();

  std::vector<FileBytes> received;
  for (size_t i = 0; i < manifest->shards.size(); ++i) {
    const size_t bytes = manifest->shards[i].bytes;
    if (!is_root) {
      received.push_back({std::make_unique_for_overwrite<std::byte[]>(bytes), bytes});
    }
    // Rank 0's bytes aren't changed by their being sent.
    std::byte* data = is_root ? (*found)->shards()[i].data.get() : received[i].data.get();
    status = group_.Broadcast({data, bytes, DataType::kU8}, 0).Wait();
    if (!status.ok()) return status;
  }
  if (is_root) return found;
  Result<LoadedCheckpoint> loaded =
      LoadedCheckpoint::Create(*std::move(manifest), std::move(received));
  if (!loaded.ok()) return loaded.status();
  return std::optional<LoadedCheckpoint>(*std::move(loaded));
}

}  // namespace muster
