#include "worker_sdk/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "worker_sdk/checkpoint/fingerprint.h"

namespace muster {
namespace {

// Hashed twice and written while it is in the processor's cache.
constexpr uint64_t kPiece = 512 << 10;

std::string Join(const std::string& directory, const std::string& name) {
  return directory + "/" + name;
}

bool IsOurFile(std::string_view name) {
  return name == kManifestFile || (name.starts_with("shard-") && name.ends_with(".safetensors"));
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes `path` and what is missing above it, so that it survives a power cut: a checkpoint is worth
// nothing in a directory that is gone.
Status MakeDirectories(FileSystem& file_system, const std::string& path) {
  Status made = file_system.CreateDirectory(path);
  if (made.code() == StatusCode::kAlreadyExists) return {};
  const std::string parent = ParentOf(path);
  if (made.code() == StatusCode::kNotFound && path != parent) {
    Status above = MakeDirectories(file_system, parent);
    if (!above.ok()) return above;
    made = file_system.CreateDirectory(path);
    if (made.code() == StatusCode::kAlreadyExists) return {};
  }
  if (!made.ok()) return made;
  const Status flushed = file_system.SyncDirectory(parent);
  // A parent that may be searched and written, but not read, can't be flushed; nor need it be.
  return flushed.code() == StatusCode::kFailedPrecondition ? Status() : flushed;
}

// Which of the shard's tensors differs from the manifest, in words.
std::string NameDamage(const Manifest::Shard& shard, const FileBytes& bytes,
                       const std::string& path) {
  const Result<safetensors::Layout> layout = safetensors::Parse(bytes.span(), path);
  if (!layout.ok()) return layout.status().message();
  for (const safetensors::TensorEntry& tensor : layout->tensors) {
    const auto recorded =
        std::find_if(shard.tensors.begin(), shard.tensors.end(),
                     [&](const Manifest::Tensor& t) { return t.name == tensor.name; });
    if (recorded == shard.tensors.end()) break;
    const uint64_t hash =
        Fingerprint::Of(bytes.data.get() + layout->data_offset + tensor.begin, tensor.bytes());
    if (hash != recorded->xxh3) {
      return path + " is damaged in tensor \"" + tensor.name + "\" (its hash is " +
             Fingerprint::Hex(hash) + ", the manifest says " + Fingerprint::Hex(recorded->xxh3) +
             ")";
    }
  }
  return path + " is damaged in its header";
}

}  // namespace

CheckpointDirectory::CheckpointDirectory(FileSystem& file_system, std::string path, Warn warn)
    : file_system_(file_system), path_(std::move(path)), warn_(std::move(warn)) {}

Result<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::Open(FileSystem& file_system,
                                                                       std::string path,
                                                                       WorldId world_id,
                                                                       Warn warn) {
  MUSTER_CHECK(path.starts_with('/'));
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::unique_ptr<CheckpointDirectory> directory(
      new CheckpointDirectory(file_system, path, std::move(warn)));
  const auto unusable = [&](const Status& reason) {
    // A missing part of the path can't be: all of it was made just now.
    const StatusCode code =
        reason.code() == StatusCode::kNotFound || reason.code() == StatusCode::kAlreadyExists
            ? StatusCode::kFailedPrecondition
            : reason.code();
    return Status(code, "the checkpoint directory " + path + " can't be used: " + reason.message() +
                            ": make it writable or name another");
  };
  Status made = MakeDirectories(file_system, path);
  if (!made.ok()) return unusable(made);
  // Named like an unfinished checkpoint, so that it is cleaned up like one if we are killed here.
  const std::string probe =
      Join(path, CheckpointName{.step = 0, .round = RoundId(0), .world_id = world_id}.ToString() +
                     kTemporarySuffix);
  const Status tried = file_system.CreateDirectory(probe);
  if (!tried.ok() && tried.code() != StatusCode::kAlreadyExists) return unusable(tried);
  if (tried.ok()) {
    const Status removed = file_system.RemoveDirectory(probe);
    if (!removed.ok()) return unusable(removed);
  }

  directory->RemoveStale(world_id);
  const Result<std::vector<Candidate>> candidates = directory->List();
  if (!candidates.ok()) return unusable(candidates.status());
  for (const Candidate& candidate : *candidates) {
    if (!candidate.manifest.has_value()) continue;
    directory->generation_ = std::max(directory->generation_, candidate.manifest->generation + 1);
  }
  return directory;
}

void CheckpointDirectory::RemoveStale(WorldId world_id) {
  const Result<std::vector<std::string>> names = file_system_.ListDirectory(path_);
  if (!names.ok()) return;  // List() says so in a moment.
  for (const std::string& entry : *names) {
    const auto name = CheckpointName::ParseTemporary(entry);
    if (!name.has_value() || name->world_id == world_id) continue;
    const Status removed = RemoveTree(entry);
    if (!removed.ok()) warn_("an unfinished checkpoint stays behind: " + removed.message());
  }
}

Status CheckpointDirectory::RemoveTree(const std::string& name) {
  const std::string tree = Join(path_, name);
  const Result<std::vector<std::string>> files = file_system_.ListDirectory(tree);
  if (!files.ok()) return files.status();
  const auto stranger = std::ranges::find_if_not(*files, IsOurFile);
  if (stranger != files->end()) {
    return {StatusCode::kFailedPrecondition,
            tree + " holds " + *stranger + ", which isn't part of a checkpoint: move it elsewhere"};
  }
  for (const std::string& file : *files) {
    Status removed = file_system_.RemoveFile(Join(tree, file));
    if (!removed.ok()) return removed;
  }
  return file_system_.RemoveDirectory(tree);
}

CheckpointDirectory::Candidate CheckpointDirectory::Inspect(const CheckpointName& name) {
  Candidate candidate{.name = name, .manifest = std::nullopt, .problem = {}};
  const std::string path = Join(PathOf(name), kManifestFile);
  const Result<FileBytes> bytes = file_system_.ReadFile(path, kMaxManifestBytes);
  if (!bytes.ok()) {
    candidate.problem = bytes.status();
    return candidate;
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes->data.get()), bytes->size);
  Result<Manifest> manifest = ParseManifest(text, path);
  if (!manifest.ok()) {
    candidate.problem = manifest.status();
  } else if (manifest->name != name.ToString()) {
    candidate.problem =
        Status(StatusCode::kDataLoss, path + " is that of " + manifest->name + ": a renamed copy");
  } else {
    candidate.manifest = *std::move(manifest);
  }
  return candidate;
}

// Newest first. Those without a manifest, whose age nobody knows, come before all others: a load
// then names them, and RemoveOld() doesn't count them.
Result<std::vector<CheckpointDirectory::Candidate>> CheckpointDirectory::List() {
  const Result<std::vector<std::string>> names = file_system_.ListDirectory(path_);
  if (!names.ok()) return names.status();
  std::vector<Candidate> candidates;
  for (const std::string& entry : *names) {
    const auto name = CheckpointName::Parse(entry);
    if (name.has_value()) candidates.push_back(Inspect(*name));
  }
  const auto age = [](const Candidate& c) {
    return std::tuple(!c.manifest.has_value(), c.manifest.has_value() ? c.manifest->generation : 0,
                      c.name.round, c.name.step, c.name.world_id);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return age(a) > age(b); });
  return candidates;
}

Result<LoadedCheckpoint> CheckpointDirectory::Read(const Candidate& candidate) {
  if (!candidate.manifest.has_value()) return candidate.problem;
  std::vector<FileBytes> shards;
  for (const Manifest::Shard& shard : candidate.manifest->shards) {
    const std::string path = Join(PathOf(candidate.name), shard.file);
    Result<FileBytes> bytes = file_system_.ReadFile(path, shard.bytes);
    if (!bytes.ok()) return bytes.status();
    if (bytes->size != shard.bytes) {
      return Status(StatusCode::kDataLoss, path + " was cut off: it has " +
                                               std::to_string(bytes->size) + " bytes of " +
                                               std::to_string(shard.bytes));
    }
    if (Fingerprint::Of(bytes->data.get(), bytes->size) != shard.xxh3) {
      return Status(StatusCode::kDataLoss, NameDamage(shard, *bytes, path));
    }
    shards.push_back(*std::move(bytes));
  }
  return LoadedCheckpoint::Create(*candidate.manifest, std::move(shards));
}

Result<std::optional<LoadedCheckpoint>> CheckpointDirectory::FindNewest(
    const std::string& preferred) {
  Result<std::vector<Candidate>> listed = List();
  if (!listed.ok()) return listed.status();
  std::vector<Candidate>& candidates = *listed;
  const auto committed =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const Candidate& c) { return c.name.ToString() == preferred; });
  std::string missing;
  if (committed != candidates.end()) {
    // The committed one, the older ones, and only then those that are newer than what the job
    // remembers (published just before their world ended).
    std::rotate(candidates.begin(), committed, candidates.end());
  } else if (!preferred.empty()) {
    missing = "the job committed " + preferred + ", which isn't in " + path_;
    warn_(missing);
  } else if (candidates.empty()) {
    return std::optional<LoadedCheckpoint>();
  }

  std::string newest_problem;
  for (const Candidate& candidate : candidates) {
    Result<LoadedCheckpoint> loaded = Read(candidate);
    if (loaded.ok()) {
      if (!newest_problem.empty() || !missing.empty()) {
        warn_("going on from checkpoint " + candidate.name.ToString());
      }
      return std::optional<LoadedCheckpoint>(*std::move(loaded));
    }
    damaged_.insert(candidate.name.ToString());
    const std::string& problem = loaded.status().message();
    warn_("passing over the checkpoint " + candidate.name.ToString() + ": " + problem +
          ": restore it from a copy or remove it");
    if (newest_problem.empty()) newest_problem = problem;
  }
  return Status(StatusCode::kDataLoss,
                (missing.empty() ? "no checkpoint in " + path_ + " is valid"
                                 : missing + ", nor is another valid one") +
                    (newest_problem.empty() ? "" : " (" + newest_problem + ")") +
                    ": restore one from a copy, or start anew in another directory");
}

Status CheckpointDirectory::Begin(const CheckpointName& name) {
  const std::string temporary = name.ToString() + kTemporarySuffix;
  const Result<std::vector<std::string>> names = file_system_.ListDirectory(path_);
  if (!names.ok()) return names.status();
  for (const std::string& entry : *names) {
    if (entry == name.ToString()) {
      return {StatusCode::kAlreadyExists,
              PathOf(name) + " exists already, and a checkpoint is never written over"};
    }
    if (entry == temporary) {
      Status removed = RemoveTree(entry);
      if (!removed.ok()) return removed;
    }
  }
  Status made = file_system_.CreateDirectory(Join(path_, temporary));
  if (made.ok()) current_ = name;
  return made;
}

Result<Manifest::Shard> CheckpointDirectory::WriteShard(const std::string& file,
                                                        const std::string& header,
                                                        const safetensors::Layout& layout,
                                                        const std::vector<const void*>& data) {
  MUSTER_CHECK(current_.has_value() && data.size() == layout.tensors.size());
  Result<std::unique_ptr<WritableFile>> opened =
      file_system_.CreateFile(Join(PathOf(*current_) + kTemporarySuffix, file));
  if (!opened.ok()) return opened.status();
  WritableFile& out = **opened;

  Fingerprint hash;
  hash.Add(header.data(), header.size());
  Status written = out.Append(header.data(), header.size());
  Manifest::Shard shard{.file = file, .bytes = layout.data_offset + layout.data_bytes};
  for (size_t i = 0; i < data.size() && written.ok(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(data[i]);
    const uint64_t size = layout.tensors[i].bytes();
    Fingerprint tensor_hash;
    for (uint64_t done = 0; done < size && written.ok(); done += kPiece) {
      const uint64_t piece = std::min(kPiece, size - done);
      hash.Add(bytes + done, piece);
      tensor_hash.Add(bytes + done, piece);
      written = out.Append(bytes + done, piece);
    }
    shard.tensors.push_back({.name = layout.tensors[i].name, .xxh3 = tensor_hash.value()});
  }
  if (written.ok()) written = out.Sync();
  if (written.ok()) written = out.Close();
  if (!written.ok()) return written;
  shard.xxh3 = hash.value();
  return shard;
}

Status CheckpointDirectory::SealShards() {
  MUSTER_CHECK(current_.has_value());
  return file_system_.SyncDirectory(PathOf(*current_) + kTemporarySuffix);
}

Status CheckpointDirectory::Publish(const Manifest& manifest) {
  MUSTER_CHECK(current_.has_value());
  const Result<std::string> text = EncodeManifest(manifest);
  if (!text.ok()) return text.status();
  const std::string temporary = PathOf(*current_) + kTemporarySuffix;
  Result<std::unique_ptr<WritableFile>> file =
      file_system_.CreateFile(Join(temporary, kManifestFile));
  if (!file.ok()) return file.status();
  Status done = (*file)->Append(text->data(), text->size());
  if (done.ok()) done = (*file)->Sync();
  if (done.ok()) done = (*file)->Close();
  if (done.ok()) done = file_system_.SyncDirectory(temporary);
  if (done.ok()) done = file_system_.Rename(temporary, PathOf(*current_));
  if (!done.ok()) return done;
  current_.reset();
  return file_system_.SyncDirectory(path_);
}

void CheckpointDirectory::Discard() {
  if (!current_.has_value()) return;
  const Status removed = RemoveTree(current_->ToString() + kTemporarySuffix);
  current_.reset();
  if (!removed.ok()) warn_("an unfinished checkpoint stays behind: " + removed.message());
}

// What can be told without reading all bytes, which a save can't afford.
bool CheckpointDirectory::HasItsFiles(const Candidate& candidate) {
  if (!candidate.manifest.has_value() || damaged_.contains(candidate.name.ToString())) return false;
  const std::vector<Manifest::Shard>& shards = candidate.manifest->shards;
  return std::all_of(shards.begin(), shards.end(), [&](const Manifest::Shard& shard) {
    const Result<uint64_t> size = file_system_.FileSize(Join(PathOf(candidate.name), shard.file));
    return size.ok() && *size == shard.bytes;
  });
}

void CheckpointDirectory::RemoveOld(int keep) {
  MUSTER_CHECK(keep >= 1);
  const Result<std::vector<Candidate>> candidates = List();
  if (!candidates.ok()) return warn_("old checkpoints stay: " + candidates.status().message());
  int valid = 0;
  std::vector<std::string> doomed;
  for (const Candidate& candidate : *candidates) {
    if (valid < keep) {
      if (HasItsFiles(candidate)) ++valid;
      continue;
    }
    const std::string name = candidate.name.ToString();
    const Result<std::vector<std::string>> files = file_system_.ListDirectory(Join(path_, name));
    const bool is_all_ours = files.ok() && std::all_of(files->begin(), files->end(), IsOurFile);
    if (!is_all_ours) continue;
    // Under its temporary name first: killed between two of its files, it isn't taken for a
    // damaged checkpoint, and the next world cleans it up.
    const Status renamed =
        file_system_.Rename(Join(path_, name), Join(path_, name + kTemporarySuffix));
    if (!renamed.ok()) return warn_("an old checkpoint stays: " + renamed.message());
    doomed.push_back(name + kTemporarySuffix);
  }
  if (doomed.empty()) return;
  // Else a power cut could keep the removal of the files and lose the new name.
  const Status flushed = file_system_.SyncDirectory(path_);
  if (!flushed.ok()) return warn_("old checkpoints stay: " + flushed.message());
  for (const std::string& temporary : doomed) {
    const Status removed = RemoveTree(temporary);
    if (!removed.ok()) warn_("an old checkpoint stays: " + removed.message());
  }
}

}  // namespace muster
