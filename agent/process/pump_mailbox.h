// What others ask of the log pump's thread: tasks, in order, and a descriptor that wakes it. Shared
// with the file thread, which may be stuck for longer than the pump lives. Thread-safe.
#ifndef MUSTER_AGENT_PROCESS_PUMP_MAILBOX_H_
#define MUSTER_AGENT_PROCESS_PUMP_MAILBOX_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace muster::agent {

// Calls that wait for the thread: a few for each worker and round, and the agent's own lines.
inline constexpr size_t kMostPumpTasks = 1 << 16;

class PumpMailbox {
 public:
  PumpMailbox() : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~PumpMailbox() { close(wake_fd_); }
  PumpMailbox(const PumpMailbox&) = delete;
  PumpMailbox& operator=(const PumpMailbox&) = delete;

  int wake_fd() const { return wake_fd_; }

  // False: too many wait already, and the task was dropped.
  bool Post(std::function<void()> task) {
    {
      base::MutexLock lock(mutex_);
      if (tasks_.size() >= kMostPumpTasks) return false;
      tasks_.push_back(std::move(task));
    }
    Wake();
    return true;
  }

  void Wake() const {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t ignored = write(wake_fd_, &one, sizeof(one));
  }

  std::vector<std::function<void()>> TakeAll() {
    base::MutexLock lock(mutex_);
    return std::exchange(tasks_, {});
  }

 private:
  const int wake_fd_;
  base::Mutex mutex_;
  std::vector<std::function<void()>> tasks_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_PUMP_MAILBOX_H_
