// A file system in memory, for tests of what must hold whenever a process or a machine dies: it
// counts its calls, and can fail at the n-th, end the "process" there (every later call fails and
// does nothing), and forget at random what was never flushed. One thread at a time.
//
//   FakeFileSystem files;
//   files.FailAt(7, FakeFileSystem::Killed());  ...run...  files.Revive();  ...look...
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_FAKE_FILE_SYSTEM_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_FAKE_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/checkpoint/file_system.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/data/random_stream.h"

namespace muster {

class FakeFileSystem : public FileSystem {
 public:
  struct Fault {
    StatusCode code = StatusCode::kUnavailable;
    std::string reason;
    // Nothing works after it.
    bool is_fatal = false;
    // An Append() writes half of its bytes first.
    bool is_half_done = false;
  };
  static Fault Killed() { return {StatusCode::kUnavailable, "killed", true, false}; }
  static Fault KilledHalfway() { return {StatusCode::kUnavailable, "killed", true, true}; }
  static Fault NoSpace() {
    return {StatusCode::kResourceExhausted, "No space left on device", false, true};
  }
  static Fault IoError() { return {StatusCode::kUnavailable, "Input/output error", false, false}; }
  static Fault ReadOnly() {
    return {StatusCode::kFailedPrecondition, "Read-only file system", false, false};
  }

  FakeFileSystem();

  // Call number `operation`, counted from 0 since the start or Revive(), meets `fault`.
  void FailAt(uint64_t operation, Fault fault);
  uint64_t operations() const { return operations_; }
  // A new process: no fault, the count begins at 0, files are as they were left.
  void Revive();
  // The machine loses power: of what was never flushed, `random` decides how much is left. Changes
  // to one directory are kept in their order, file contents may be cut or zero at their end.
  void LosePower(RandomStream& random);

  // For tests to look and to meddle; not counted, never failing. `path` must exist for the last
  // two.
  bool Exists(const std::string& path) const;
  void Put(const std::string& path, const std::string& contents);
  std::string& Contents(const std::string& path);

  Status CreateDirectory(const std::string& path) override;
  Result<std::vector<std::string>> ListDirectory(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<FileBytes> ReadFile(const std::string& path, uint64_t max_size) override;
  Result<uint64_t> FileSize(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status SyncDirectory(const std::string& path) override;
  Status RemoveFile(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;

 private:
  struct Node;
  // shared_ptr: a file lives on while it is open, and both before and after a change that isn't
  // flushed.
  using NodePtr = std::shared_ptr<Node>;
  using Entries = std::map<std::string, NodePtr>;
  // A name gone, a name new, or both at once (a rename).
  struct Change {
    std::string removed;
    std::string added;
    NodePtr node;
  };
  struct Node {
    bool is_directory = false;
    std::string contents;
    std::string flushed_contents;
    Entries entries;
    Entries flushed_entries;
    // Since the last flush, in order.
    std::vector<Change> changes;
  };
  class File;

  static void Apply(const Change& change, Entries& entries);
  static void Forget(Node& node, RandomStream& random);
  NodePtr Find(const std::string& path) const;
  // Counts a call; the error it ends with, or OK.
  Status Enter(const std::string& path, bool* is_half_done = nullptr);
  // Changes the directory of `path`; kNotFound where there is none.
  Status ChangeParent(const std::string& path, const Change& change);
  Status Create(const std::string& path, NodePtr node);
  Status Remove(const std::string& path, bool is_directory);

  NodePtr root_;
  uint64_t operations_ = 0;
  uint64_t fault_at_ = 0;
  std::optional<Fault> fault_;
  bool is_dead_ = false;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_FAKE_FILE_SYSTEM_H_
