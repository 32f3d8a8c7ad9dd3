// What other threads want done on a loop's thread, in order. Thread-safe.
#ifndef MUSTER_AGENT_TASK_QUEUE_H_
#define MUSTER_AGENT_TASK_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <utility>

#include "base/instant.h"
#include "base/mutex.h"

namespace muster::agent {

class TaskQueue {
 public:
  // Far more than a loop that keeps up ever has.
  static constexpr size_t kMostOffered = 1 << 16;

  // For what comes from outside without a bound of its own. False: the queue is full, and the task
  // was dropped.
  bool Offer(std::function<void()> task) {
    {
      base::MutexLock lock(mutex_);
      if (tasks_.size() >= kMostOffered) return false;
      tasks_.push_back(std::move(task));
    }
    arrived_.notify_one();
    return true;
  }

  // For what can't be lost, and has a bound where it comes from: a few for each worker and round.
  void Post(std::function<void()> task) {
    {
      base::MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    arrived_.notify_one();
  }

  // The next task; nothing after `most` without one. A negative `most` is none, Duration::max() for
  // ever.
  std::function<void()> Take(Duration most) {
    const auto begin = std::chrono::steady_clock::now();
    base::MutexLock lock(mutex_);
    while (tasks_.empty()) {
      if (most == Duration::max()) {
        arrived_.wait(mutex_);
        continue;
      }
      const bool is_late = arrived_.wait_until(mutex_, begin + most) == std::cv_status::timeout;
      if (is_late && tasks_.empty()) return nullptr;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

 private:
  base::Mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<std::function<void()>> tasks_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_TASK_QUEUE_H_
