#include "agent/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/entropy.h"
#include "base/ids.h"

namespace muster::agent {
namespace {

constexpr std::string_view kStart = "muster_";
constexpr size_t kHexDigits = 32;
// Since something was last made in it.
constexpr time_t kOldAfterS = 60;
// A temporary folder may hold anything; more names than this are somebody else's trouble.
constexpr int kMostNames = 100'000;

bool IsName(std::string_view name) {
  return name.size() == kStart.size() + kHexDigits && name.starts_with(kStart) &&
         std::all_of(name.begin() + kStart.size(), name.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

int OpenFolder(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool IsAbandoned(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
         time(nullptr) - status.st_mtime >= kOldAfterS && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

PrivateFolder::PrivateFolder(const std::string& parent)
    : path_(parent + "/" + std::string(kStart) + base::FreshId<Incarnation>().ToHex()) {}

PrivateFolder::~PrivateFolder() {
  if (fd_ >= 0) close(fd_);
}

void PrivateFolder::Make() {
  // It may have been there, and have been cleared away by somebody else.
  if (mkdir(path_.c_str(), 0700) != 0) return;
  if (fd_ >= 0) close(fd_);
  fd_ = OpenFolder(path_);
  // Shared: one that removes takes it for itself. Where locks are refused nobody can take it
  // either.
  if (fd_ >= 0) flock(fd_, LOCK_SH | LOCK_NB);
}

void RemoveAbandonedFolders(const std::string& parent) {
  std::error_code error;
  std::filesystem::directory_iterator it(parent, error);
  for (int i = 0; !error && it != std::filesystem::directory_iterator() && i < kMostNames; ++i) {
    std::string path = it->path().string();
    bool is_ours = IsName(it->path().filename().string());
    it.increment(error);
    if (!is_ours) continue;
    int fd = OpenFolder(path);
    if (fd < 0) continue;
    std::error_code ignored;  // its next finder tries again
    if (IsAbandoned(fd)) std::filesystem::remove_all(path, ignored);
    close(fd);
  }
}

}  // namespace muster::agent
