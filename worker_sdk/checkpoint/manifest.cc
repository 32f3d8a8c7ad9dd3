#include "worker_sdk/checkpoint/manifest.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "worker_sdk/checkpoint/fingerprint.h"

namespace muster {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr std::string_view kBeforeHash = "{\"xxh3\":\"";
constexpr std::string_view kAfterHash = "\",\"manifest\":";
constexpr std::string_view kEnd = "}\n";
constexpr size_t kHashDigits = 16;

std::string BytesToHex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

bool HexToBytes(const std::string& hex, std::string* bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  if (hex.size() % 2 != 0) return false;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const size_t high = kDigits.find(hex[i]), low = kDigits.find(hex[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes->push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

json ShardToJson(const Manifest::Shard& shard) {
  json tensors = json::array();
  for (const Manifest::Tensor& tensor : shard.tensors) {
    tensors.push_back({{"name", tensor.name}, {"xxh3", Fingerprint::Hex(tensor.xxh3)}});
  }
  return {{"file", shard.file},
          {"bytes", shard.bytes},
          {"xxh3", Fingerprint::Hex(shard.xxh3)},
          {"tensors", std::move(tensors)}};
}

// Throws what nlohmann throws where a member is missing or of another type; false where a value
// can't be.
bool ShardFromJson(const json& value, Manifest::Shard* shard) {
  shard->file = value.at("file").get<std::string>();
  shard->bytes = value.at("bytes").get<uint64_t>();
  // A manifest must not lead out of its directory.
  if (shard->file.empty() || shard->file.find('/') != std::string::npos) return false;
  if (!Fingerprint::ParseHex(value.at("xxh3").get<std::string>(), &shard->xxh3)) return false;
  for (const json& entry : value.at("tensors")) {
    Manifest::Tensor tensor{.name = entry.at("name").get<std::string>()};
    if (!Fingerprint::ParseHex(entry.at("xxh3").get<std::string>(), &tensor.xxh3)) return false;
    shard->tensors.push_back(std::move(tensor));
  }
  return true;
}

json ToJson(const Manifest& manifest) {
  json random_states = json::array();
  for (const std::string& state : manifest.random_states) {
    random_states.push_back(BytesToHex(state));
  }
  json shards = json::array();
  for (const Manifest::Shard& shard : manifest.shards) shards.push_back(ShardToJson(shard));
  json object = {{"format", kFormat},
                 {"name", manifest.name},
                 {"step", manifest.step},
                 {"epoch", manifest.epoch},
                 {"generation", manifest.generation},
                 {"round", manifest.round},
                 {"parent", manifest.parent},
                 {"world_size", manifest.world_size},
                 {"random_states", std::move(random_states)},
                 {"extras", manifest.extras},
                 {"shards", std::move(shards)}};
  if (manifest.sampler.has_value()) {
    const SamplerState& sampler = *manifest.sampler;
    object["sampler"] = {{"seed", sampler.seed},
                         {"epoch", sampler.epoch},
                         {"position", sampler.position},
                         {"world_size", sampler.world_size},
                         {"dataset_size", sampler.dataset_size},
                         {"shuffle", sampler.shuffle}};
  }
  return object;
}

// As ShardFromJson().
bool FromJson(const json& object, Manifest* manifest) {
  manifest->name = object.at("name").get<std::string>();
  manifest->step = object.at("step").get<int64_t>();
  manifest->epoch = object.at("epoch").get<int64_t>();
  manifest->generation = object.at("generation").get<uint64_t>();
  manifest->round = object.at("round").get<uint64_t>();
  manifest->parent = object.at("parent").get<std::string>();
  manifest->world_size = object.at("world_size").get<int>();
  manifest->extras = object.at("extras").get<std::map<std::string, std::string>>();
  for (const json& hex : object.at("random_states")) {
    if (!HexToBytes(hex.get<std::string>(), &manifest->random_states.emplace_back())) return false;
  }
  for (const json& shard : object.at("shards")) {
    if (!ShardFromJson(shard, &manifest->shards.emplace_back())) return false;
  }
  if (object.contains("sampler")) {
    const json& sampler = object["sampler"];
    manifest->sampler = SamplerState{.seed = sampler.at("seed").get<uint64_t>(),
                                     .epoch = sampler.at("epoch").get<int64_t>(),
                                     .position = sampler.at("position").get<uint64_t>(),
                                     .world_size = sampler.at("world_size").get<int>(),
                                     .dataset_size = sampler.at("dataset_size").get<uint64_t>(),
                                     .shuffle = sampler.at("shuffle").get<bool>()};
  }
  return true;
}

}  // namespace

Result<std::string> EncodeManifest(const Manifest& manifest) {
  std::string body;
  try {
    body = ToJson(manifest).dump();
  } catch (const json::exception&) {
    return Status(StatusCode::kInvalidArgument,
                  "a name or a text among the extras of the checkpoint isn't UTF-8");
  }
  std::string text(kBeforeHash);
  text += Fingerprint::Hex(Fingerprint::Of(body.data(), body.size()));
  text += kAfterHash;
  text += body;
  text += kEnd;
  return text;
}

Result<Manifest> ParseManifest(std::string_view text, const std::string& path) {
  const Status damaged(StatusCode::kDataLoss, path + " is damaged");
  const size_t frame = kBeforeHash.size() + kHashDigits + kAfterHash.size();
  if (text.size() < frame + kEnd.size() || !text.starts_with(kBeforeHash) ||
      text.substr(kBeforeHash.size() + kHashDigits, kAfterHash.size()) != kAfterHash ||
      !text.ends_with(kEnd)) {
    return damaged;
  }
  const std::string_view body = text.substr(frame, text.size() - frame - kEnd.size());
  uint64_t hash = 0;
  if (!Fingerprint::ParseHex(text.substr(kBeforeHash.size(), kHashDigits), &hash) ||
      Fingerprint::Of(body.data(), body.size()) != hash) {
    return damaged;
  }
  const json object = json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  Manifest manifest;
  try {
    if (object.at("format").get<int>() > kFormat) {
      return Status(StatusCode::kDataLoss,
                    path + " is of format " + std::to_string(object.at("format").get<int>()) +
                        ", this muster knows up to " + std::to_string(kFormat) +
                        ": use the version that wrote it");
    }
    if (!FromJson(object, &manifest)) return damaged;
  } catch (const json::exception& error) {
    return Status(StatusCode::kDataLoss, path + " is damaged: " + error.what());
  }
  return manifest;
}

}  // namespace muster
