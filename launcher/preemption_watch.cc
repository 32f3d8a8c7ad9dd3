#include "launcher/preemption_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

absl::StatusOr<std::unique_ptr<PreemptionWatch>> PreemptionWatch::Start(const std::string& path,
                                                                        OnNotice on_notice) {
  const std::filesystem::path given(path);
  std::error_code none;
  if (std::filesystem::is_directory(given, none)) {
    return absl::InvalidArgumentError(Cat("--preemption-file=", path,
                                          " is a folder, and would be a notice at once; name a "
                                          "file in it"));
  }
  const std::string folder = given.has_parent_path() ? given.parent_path().string() : ".";
  const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  // Whatever happens to an entry of the folder: links and renames make files appear, too.
  const bool is_watched =
      fd >= 0 && inotify_add_watch(fd, folder.c_str(),
                                   IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR) >= 0;
  if (!is_watched) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return absl::InvalidArgumentError(
        Cat("--preemption-file=", path, ": the folder ", folder, " can't be watched (", why,
            "); make it before the job starts, or name a file in another one"));
  }
  // The watch is in place: what appears after this look wakes it.
  if (IsThere(path)) {
    close(fd);
    return absl::FailedPreconditionError(
        Cat("stopped before the job had begun by preemption notice ", path,
            ", left over from before this start: remove the file before the node is started "
            "again"));
  }
  return std::unique_ptr<PreemptionWatch>(new PreemptionWatch(fd, path, std::move(on_notice)));
}

PreemptionWatch::PreemptionWatch(int inotify_fd, std::string path, OnNotice on_notice)
    : inotify_fd_(inotify_fd),
      path_(std::move(path)),
      on_notice_(std::move(on_notice)),
      stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { Run(); });
}

PreemptionWatch::~PreemptionWatch() {
  uint64_t one = 1;
  if (write(stop_fd_, &one, sizeof one) == sizeof one) thread_.join();
  close(stop_fd_);
  close(inotify_fd_);
}

void PreemptionWatch::Run() {
  while (!IsThere(path_)) {
    std::array<pollfd, 2> fds = {pollfd{stop_fd_, POLLIN, 0}, pollfd{inotify_fd_, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    std::array<char, 4096> events;
    while (read(inotify_fd_, events.data(), events.size()) > 0) {
    }
  }
  on_notice_();
}

}  // namespace muster::launcher
