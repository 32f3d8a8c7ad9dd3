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
  return std::unique_ptr<PreemptionWatch>(new PreemptionWatch(fd, path, std::move(on_notice)));
}

PreemptionWatch::PreemptionWatch(int inotify_fd, std::string path, OnNotice on_notice)
    : inotify_fd_(inotify_fd),
      path_(std::move(path)),
      on_notice_(std::move(on_notice)),
      is_left_over_(IsThere()),
      stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { Run(); });
}

PreemptionWatch::~PreemptionWatch() {
  uint64_t one = 1;
  if (write(stop_fd_, &one, sizeof one) == sizeof one) thread_.join();
  close(stop_fd_);
  close(inotify_fd_);
}

bool PreemptionWatch::IsThere() const { return access(path_.c_str(), F_OK) == 0; }

void PreemptionWatch::Run() {
  // The watch is in place, so what appears after this look wakes us.
  while (!IsThere()) {
    std::array<pollfd, 2> fds = {pollfd{stop_fd_, POLLIN, 0}, pollfd{inotify_fd_, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    std::array<char, 4096> events;
    while (read(inotify_fd_, events.data(), events.size()) > 0) {
    }
  }
  on_notice_(is_left_over_);
}

}  // namespace muster::launcher
