// The few file operations that a checkpoint is made of, one system call (or its plain repetition)
// each, so that a test can fail or end the process at every one of them
// (worker_sdk/checkpoint/fake_file_system.h). Paths are absolute. Thread-safe; a WritableFile is
// for one thread.
//
// Every error names the path and the system's reason. kNotFound, kAlreadyExists,
// kResourceExhausted (no space, quota), kFailedPrecondition (no permission, read-only, not a
// directory), kUnavailable (anything else, as an I/O error).
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_FILE_SYSTEM_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker_sdk/context/status.h"

namespace muster {

// A new file that is being written from its beginning. Closes itself when destroyed.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // After an error some of the bytes may have been written.
  virtual Status Append(const void* data, size_t size) = 0;
  // What was appended survives a power cut.
  virtual Status Sync() = 0;
  // At most once, and nothing after it.
  virtual Status Close() = 0;
};

// Bytes of a file, uninitialised at first: a vector would write them all twice.
struct FileBytes {
  std::unique_ptr<std::byte[]> data;
  size_t size = 0;
  std::span<const std::byte> span() const { return {data.get(), size}; }
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // kAlreadyExists: something of that name exists, directory or not.
  virtual Status CreateDirectory(const std::string& path) = 0;
  // Names in it without "." and "..", sorted.
  virtual Result<std::vector<std::string>> ListDirectory(const std::string& path) = 0;
  // kAlreadyExists: never truncates or follows what is there.
  virtual Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;
  // kResourceExhausted: larger than `max_size`.
  virtual Result<FileBytes> ReadFile(const std::string& path, uint64_t max_size) = 0;
  virtual Result<uint64_t> FileSize(const std::string& path) = 0;
  // kAlreadyExists: `to` exists; it is never replaced.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // The names in the directory, as they are now, survive a power cut.
  virtual Status SyncDirectory(const std::string& path) = 0;
  virtual Status RemoveFile(const std::string& path) = 0;
  // Fails unless it is empty.
  virtual Status RemoveDirectory(const std::string& path) = 0;
};

// The machine's. Never destroyed.
FileSystem& RealFileSystem();

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_FILE_SYSTEM_H_
