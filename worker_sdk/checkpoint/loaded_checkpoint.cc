#include "worker_sdk/checkpoint/loaded_checkpoint.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace muster {

Result<LoadedCheckpoint> LoadedCheckpoint::Create(Manifest manifest,
                                                  std::vector<FileBytes> shards) {
  MUSTER_CHECK(manifest.shards.size() == shards.size());
  LoadedCheckpoint loaded;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string path = manifest.name + "/" + manifest.shards[i].file;
    Result<safetensors::Layout> layout = safetensors::Parse(shards[i].span(), path);
    if (!layout.ok()) return layout.status();
    for (safetensors::TensorEntry& tensor : layout->tensors) {
      const uint64_t offset = layout->data_offset + tensor.begin;
      std::string name = tensor.name;
      const bool is_new =
          loaded.tensors_
              .emplace(std::move(name),
                       Place{.shard = i, .entry = std::move(tensor), .offset = offset})
              .second;
      if (!is_new) {
        return Status(StatusCode::kDataLoss, path + " repeats a tensor of another shard");
      }
    }
  }
  loaded.manifest_ = std::move(manifest);
  loaded.shards_ = std::move(shards);
  return loaded;
}

std::string LoadedCheckpoint::random_state(int rank) const {
  const auto index = static_cast<size_t>(rank);
  if (rank < 0 || index >= manifest_.random_states.size()) return "";
  return manifest_.random_states[index];
}

std::vector<std::string> LoadedCheckpoint::tensor_names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : tensors_) names.push_back(name);
  return names;
}

Status LoadedCheckpoint::CopyTo(const std::string& name, Buffer into) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return {StatusCode::kNotFound, "checkpoint " + manifest_.name + " has no tensor \"" + name +
                                       "\": was it saved by another model?"};
  }
  const Place& place = found->second;
  if (place.entry.dtype != safetensors::DtypeName(into.type) ||
      place.entry.bytes() != into.bytes()) {
    return {StatusCode::kInvalidArgument,
            "checkpoint " + manifest_.name + ": tensor \"" + name + "\" has " +
                std::to_string(place.entry.bytes()) + " bytes of " + place.entry.dtype +
                ", the program wants " + std::to_string(into.bytes()) + " of " +
                safetensors::DtypeName(into.type) + ": was it saved by another model?"};
  }
  if (into.count > 0) {
    std::memcpy(into.data, shards_[place.shard].data.get() + place.offset, into.bytes());
  }
  return {};
}

}  // namespace muster
