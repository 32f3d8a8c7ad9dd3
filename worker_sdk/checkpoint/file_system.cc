#include "worker_sdk/checkpoint/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace muster {
namespace {

// Linux moves at most 2 GiB in one call; smaller pieces leave room for signals.
constexpr size_t kMaxTransfer = size_t{256} << 20;

Status ErrnoStatus(int error, const char* action, const std::string& path) {
  StatusCode code = StatusCode::kUnavailable;
  switch (error) {
    case ENOENT:
      code = StatusCode::kNotFound;
      break;
    case EEXIST:
    case ENOTEMPTY:
      code = StatusCode::kAlreadyExists;
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      code = StatusCode::kResourceExhausted;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
      code = StatusCode::kFailedPrecondition;
      break;
    default:
      break;
  }
  char reason[128];
  // The GNU strerror_r: the text may or may not be in `reason`.
  return {code, std::string("can't ") + action + " " + path + ": " +
                    strerror_r(error, reason, sizeof reason)};
}

Status CheckCall(int result, const char* action, const std::string& path) {
  return result == 0 ? Status() : ErrnoStatus(errno, action, path);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

class RealFile : public WritableFile {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  Status Append(const void* data, size_t size) override {
    const char* next = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = write(fd_.get(), next, std::min(size, kMaxTransfer));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return ErrnoStatus(errno, "write", path_);
      next += written;
      size -= static_cast<size_t>(written);
    }
    return {};
  }
  Status Sync() override { return CheckCall(fsync(fd_.get()), "flush", path_); }
  // Where close() is interrupted Linux has closed the file all the same.
  Status Close() override { return CheckCall(close(fd_.Release()), "close", path_); }

 private:
  Descriptor fd_;
  const std::string path_;
};

class RealFiles : public FileSystem {
 public:
  Status CreateDirectory(const std::string& path) override {
    return CheckCall(mkdir(path.c_str(), 0777), "make the directory", path);
  }

  Result<std::vector<std::string>> ListDirectory(const std::string& path) override {
    DIR* directory = opendir(path.c_str());
    if (directory == nullptr) return ErrnoStatus(errno, "read the directory", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(directory)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    const int error = errno;
    closedir(directory);
    if (error != 0) return ErrnoStatus(error, "read the directory", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) return ErrnoStatus(errno, "create", path);
    return std::unique_ptr<WritableFile>(std::make_unique<RealFile>(fd, path));
  }

  Result<FileBytes> ReadFile(const std::string& path, uint64_t max_size) override {
    const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return ErrnoStatus(errno, "open", path);
    struct stat about {};
    if (fstat(fd.get(), &about) != 0) return ErrnoStatus(errno, "read", path);
    if (!S_ISREG(about.st_mode)) {
      return Status(StatusCode::kFailedPrecondition, "can't read " + path + ": not a file");
    }
    const auto size = static_cast<uint64_t>(about.st_size);
    if (size > max_size) {
      return Status(StatusCode::kResourceExhausted,
                    "can't read " + path + ": it has " + std::to_string(size) +
                        " bytes, expected at most " + std::to_string(max_size));
    }
    FileBytes bytes{std::make_unique_for_overwrite<std::byte[]>(size), 0};
    while (bytes.size < size) {
      const ssize_t got = read(fd.get(), bytes.data.get() + bytes.size,
                               std::min<size_t>(size - bytes.size, kMaxTransfer));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "read", path);
      if (got == 0) break;  // Shortened meanwhile: the caller compares sizes.
      bytes.size += static_cast<size_t>(got);
    }
    return bytes;
  }

  Result<uint64_t> FileSize(const std::string& path) override {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) return ErrnoStatus(errno, "look at", path);
    return static_cast<uint64_t>(about.st_size);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
    if (errno != EINVAL && errno != ENOSYS) return ErrnoStatus(errno, "rename to", to);
    // Network file systems don't know the flag. Names are unique to a world and one process of it
    // renames, so that nobody can come between the question and the call.
    struct stat about {};
    if (lstat(to.c_str(), &about) == 0) return ErrnoStatus(EEXIST, "rename to", to);
    return CheckCall(rename(from.c_str(), to.c_str()), "rename to", to);
  }

  Status SyncDirectory(const std::string& path) override {
    const Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0) return ErrnoStatus(errno, "open the directory", path);
    // EINVAL: a file system on which directories need no flush.
    if (fsync(fd.get()) != 0 && errno != EINVAL) {
      return ErrnoStatus(errno, "flush the directory", path);
    }
    return {};
  }

  Status RemoveFile(const std::string& path) override {
    return CheckCall(unlink(path.c_str()), "remove", path);
  }
  Status RemoveDirectory(const std::string& path) override {
    return CheckCall(rmdir(path.c_str()), "remove the directory", path);
  }
};

}  // namespace

FileSystem& RealFileSystem() {
  static RealFiles& files = *new RealFiles;
  return files;
}

}  // namespace muster
