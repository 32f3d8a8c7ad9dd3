#include "worker_sdk/checkpoint/fake_file_system.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  MUSTER_CHECK(slash != std::string::npos);
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Status NotFound(const std::string& path) {
  return {StatusCode::kNotFound, path + ": No such file or directory"};
}

Status FileExists(const std::string& path) {
  return {StatusCode::kAlreadyExists, path + ": File exists"};
}

}  // namespace

class FakeFileSystem::File : public WritableFile {
 public:
  File(FakeFileSystem& files, NodePtr node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)) {}

  Status Append(const void* data, size_t size) override {
    bool is_half_done = false;
    Status entered = files_.Enter(path_, &is_half_done);
    const size_t written = entered.ok() ? size : is_half_done ? size / 2 : 0;
    node_->contents.append(static_cast<const char*>(data), written);
    return entered;
  }
  Status Sync() override {
    Status entered = files_.Enter(path_);
    if (entered.ok()) node_->flushed_contents = node_->contents;
    return entered;
  }
  Status Close() override { return files_.Enter(path_); }

 private:
  FakeFileSystem& files_;
  const NodePtr node_;
  const std::string path_;
};

FakeFileSystem::FakeFileSystem() : root_(std::make_shared<Node>()) { root_->is_directory = true; }

void FakeFileSystem::FailAt(uint64_t operation, Fault fault) {
  fault_at_ = operation;
  fault_ = std::move(fault);
}

void FakeFileSystem::Revive() {
  operations_ = 0;
  fault_.reset();
  is_dead_ = false;
}

void FakeFileSystem::LosePower(RandomStream& random) { Forget(*root_, random); }

void FakeFileSystem::Apply(const Change& change, Entries& entries) {
  if (!change.removed.empty()) entries.erase(change.removed);
  if (!change.added.empty()) entries[change.added] = change.node;
}

void FakeFileSystem::Forget(Node& node, RandomStream& random) {
  if (!node.is_directory) {
    const size_t flushed = node.flushed_contents.size();
    const size_t kept = flushed + random.Below(node.contents.size() - flushed + 1);
    node.contents.resize(kept);
    // The length may reach the disk before the bytes do.
    const size_t sound = flushed + random.Below(kept - flushed + 1);
    std::fill(node.contents.begin() + static_cast<ptrdiff_t>(sound), node.contents.end(), '\0');
    node.flushed_contents = node.contents;
    return;
  }
  node.entries = node.flushed_entries;
  const uint64_t kept = random.Below(node.changes.size() + 1);
  for (size_t i = 0; i < kept; ++i) Apply(node.changes[i], node.entries);
  node.changes.clear();
  node.flushed_entries = node.entries;
  for (auto& [name, entry] : node.entries) Forget(*entry, random);
}

FakeFileSystem::NodePtr FakeFileSystem::Find(const std::string& path) const {
  NodePtr node = root_;
  size_t begin = 1;
  while (node != nullptr && begin < path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const auto entry = node->entries.find(path.substr(begin, end - begin));
    node = entry == node->entries.end() ? nullptr : entry->second;
    begin = end + 1;
  }
  return node;
}

Status FakeFileSystem::Enter(const std::string& path, bool* is_half_done) {
  if (is_dead_) return {StatusCode::kUnavailable, path + ": the process is dead"};
  if (operations_++ != fault_at_ || !fault_.has_value()) return {};
  is_dead_ = fault_->is_fatal;
  if (is_half_done != nullptr) *is_half_done = fault_->is_half_done;
  return {fault_->code, path + ": " + fault_->reason};
}

Status FakeFileSystem::ChangeParent(const std::string& path, const Change& change) {
  const NodePtr parent = Find(ParentOf(path));
  if (parent == nullptr) return NotFound(path);
  if (!parent->is_directory) {
    return {StatusCode::kFailedPrecondition, path + ": Not a directory"};
  }
  Apply(change, parent->entries);
  parent->changes.push_back(change);
  return {};
}

Status FakeFileSystem::Create(const std::string& path, NodePtr node) {
  if (Find(path) != nullptr) return FileExists(path);
  return ChangeParent(path, {.removed = "", .added = NameOf(path), .node = std::move(node)});
}

Status FakeFileSystem::Remove(const std::string& path, bool is_directory) {
  const NodePtr node = Find(path);
  if (node == nullptr) return NotFound(path);
  if (node->is_directory != is_directory || !node->entries.empty()) {
    return {StatusCode::kFailedPrecondition, path + ": not a file, or a directory with entries"};
  }
  return ChangeParent(path, {.removed = NameOf(path), .added = "", .node = nullptr});
}

bool FakeFileSystem::Exists(const std::string& path) const { return Find(path) != nullptr; }

void FakeFileSystem::Put(const std::string& path, const std::string& contents) {
  auto node = std::make_shared<Node>();
  node->contents = node->flushed_contents = contents;
  const NodePtr parent = Find(ParentOf(path));
  MUSTER_CHECK(parent != nullptr);
  parent->entries[NameOf(path)] = parent->flushed_entries[NameOf(path)] = std::move(node);
}

std::string& FakeFileSystem::Contents(const std::string& path) {
  const NodePtr node = Find(path);
  MUSTER_CHECK(node != nullptr && !node->is_directory);
  return node->contents;
}

Status FakeFileSystem::CreateDirectory(const std::string& path) {
  Status entered = Enter(path);
  if (!entered.ok()) return entered;
  auto node = std::make_shared<Node>();
  node->is_directory = true;
  return Create(path, std::move(node));
}

Result<std::vector<std::string>> FakeFileSystem::ListDirectory(const std::string& path) {
  Status entered = Enter(path);
  if (!entered.ok()) return entered;
  const NodePtr node = Find(path);
  if (node == nullptr) return NotFound(path);
  if (!node->is_directory) return Status(StatusCode::kFailedPrecondition, path + ": a file");
  std::vector<std::string> names;
  for (const auto& [name, entry] : node->entries) names.push_back(name);
  return names;
}

Result<std::unique_ptr<WritableFile>> FakeFileSystem::CreateFile(const std::string& path) {
  Status entered = Enter(path);
  if (!entered.ok()) return entered;
  auto node = std::make_shared<Node>();
  Status created = Create(path, node);
  if (!created.ok()) return created;
  return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, std::move(node), path));
}

Result<FileBytes> FakeFileSystem::ReadFile(const std::string& path, uint64_t max_size) {
  Status entered = Enter(path);
  if (!entered.ok()) return entered;
  const NodePtr node = Find(path);
  if (node == nullptr) return NotFound(path);
  if (node->is_directory) return Status(StatusCode::kFailedPrecondition, path + ": not a file");
  const size_t size = node->contents.size();
  if (size > max_size) return Status(StatusCode::kResourceExhausted, path + ": too large");
  FileBytes bytes{std::make_unique_for_overwrite<std::byte[]>(size), size};
  std::memcpy(bytes.data.get(), node->contents.data(), size);
  return bytes;
}

Result<uint64_t> FakeFileSystem::FileSize(const std::string& path) {
  Status entered = Enter(path);
  if (!entered.ok()) return entered;
  const NodePtr node = Find(path);
  if (node == nullptr) return NotFound(path);
  return static_cast<uint64_t>(node->contents.size());
}

Status FakeFileSystem::Rename(const std::string& from, const std::string& to) {
  Status entered = Enter(from);
  if (!entered.ok()) return entered;
  // One change to one directory; nothing here renames across directories.
  MUSTER_CHECK(ParentOf(from) == ParentOf(to));
  const NodePtr node = Find(from);
  if (node == nullptr) return NotFound(from);
  if (Find(to) != nullptr) return FileExists(to);
  return ChangeParent(to, {.removed = NameOf(from), .added = NameOf(to), .node = node});
}

Status FakeFileSystem::SyncDirectory(const std::string& path) {
  Status entered = Enter(path);
  if (!entered.ok()) return entered;
  const NodePtr node = Find(path);
  if (node == nullptr) return NotFound(path);
  node->flushed_entries = node->entries;
  node->changes.clear();
  return {};
}

Status FakeFileSystem::RemoveFile(const std::string& path) {
  Status entered = Enter(path);
  return entered.ok() ? Remove(path, /*is_directory=*/false) : entered;
}

Status FakeFileSystem::RemoveDirectory(const std::string& path) {
  Status entered = Enter(path);
  return entered.ok() ? Remove(path, /*is_directory=*/true) : entered;
}

}  // namespace muster
