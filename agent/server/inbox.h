// What other threads ask of a thread that polls descriptors: tasks, and an event to wake it.
// Thread-safe; TakeAll() is for the one thread that runs them.
#ifndef MUSTER_AGENT_SERVER_INBOX_H_
#define MUSTER_AGENT_SERVER_INBOX_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "base/mutex.h"

namespace muster::agent {

// Shared with the callbacks of key-value calls,
// which may come after the service is gone.
class Inbox {
 public:
  Inbox() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Inbox() { close(event_); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  int event() const { return event_; }

  void Post(std::function<void()> task) {
    base::MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    uint64_t one = 1;
    // Fails only when 2^64-1 wake-ups are pending: awake then, too.
    [[maybe_unused]] ssize_t put = write(event_, &one, sizeof one);
  }

  std::deque<std::function<void()>> TakeAll() {
    uint64_t count = 0;
    [[maybe_unused]] ssize_t got = read(event_, &count, sizeof count);
    base::MutexLock lock(mutex_);
    return std::exchange(tasks_, {});
  }

 private:
  const int event_;
  base::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_SERVER_INBOX_H_
