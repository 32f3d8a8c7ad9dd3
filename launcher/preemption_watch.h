// Watches for the file by which a scheduler announces that this node will be taken away
// (--preemption-file). The kernel tells of it (inotify): nothing is polled. Owned by whoever runs
// the job; the callback is called once, on a thread of the watch's own, where everything is
// allowed.
#ifndef MUSTER_LAUNCHER_PREEMPTION_WATCH_H_
#define MUSTER_LAUNCHER_PREEMPTION_WATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace muster::launcher {

class PreemptionWatch {
 public:
  using OnNotice = std::function<void()>;

  // One sentence each. InvalidArgument: it is a folder, or its own folder isn't there or can't be
  // watched. FailedPrecondition: the file is there already, left over from before this start: a
  // notice as well, but before the job there is only this node to end.
  static absl::StatusOr<std::unique_ptr<PreemptionWatch>> Start(const std::string& path,
                                                                OnNotice on_notice);
  // A call of the callback that goes on is waited for.
  ~PreemptionWatch();
  PreemptionWatch(const PreemptionWatch&) = delete;
  PreemptionWatch& operator=(const PreemptionWatch&) = delete;

 private:
  PreemptionWatch(int inotify_fd, std::string path, OnNotice on_notice);
  void Run();

  const int inotify_fd_;
  const std::string path_;
  const OnNotice on_notice_;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_PREEMPTION_WATCH_H_
