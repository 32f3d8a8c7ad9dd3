#include "agent/process/file_thread.h"

#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace muster::agent {
namespace {

struct FileTask {
  size_t bytes = 0;
  std::function<void()> run;
};

}  // namespace

struct FileThread::Shared {
  explicit Shared(std::function<void()> when_room) : on_room(std::move(when_room)) {}

  const std::function<void()> on_room;
  base::Mutex mutex;
  std::condition_variable_any changed;
  std::deque<FileTask> tasks MUSTER_GUARDED_BY(mutex);
  // Of the queue and of the task that runs.
  size_t bytes MUSTER_GUARDED_BY(mutex) = 0;
  bool is_running MUSTER_GUARDED_BY(mutex) = false;
  // When a task was last finished, or the queue was last empty.
  Instant last_progress MUSTER_GUARDED_BY(mutex);
  bool must_end MUSTER_GUARDED_BY(mutex) = false;
  bool has_ended MUSTER_GUARDED_BY(mutex) = false;

  Instant StuckAt() const MUSTER_REQUIRES(mutex) {
    return tasks.empty() && !is_running ? Instant::Never() : last_progress + kFileStuckAfter;
  }

  bool IsHigh() const MUSTER_REQUIRES(mutex) {
    return bytes >= kFileHighWaterBytes ||
           tasks.size() + (is_running ? 1 : 0) >= kFileHighWaterTasks;
  }

  void Add(FileTask task) MUSTER_REQUIRES(mutex) {
    if (tasks.empty() && !is_running) last_progress = SystemClock().Now();
    bytes += task.bytes;
    tasks.push_back(std::move(task));
    changed.notify_all();
  }

  bool TakeNext(FileTask* task) {
    base::MutexLock lock(mutex);
    while (tasks.empty() && !must_end) changed.wait(mutex);
    if (tasks.empty()) {
      has_ended = true;
      changed.notify_all();
      return false;
    }
    *task = std::move(tasks.front());
    tasks.pop_front();
    is_running = true;
    return true;
  }

  void Serve() {
    sigset_t all;
    sigfillset(&all);
    // Signals are for other threads.
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    FileTask task;
    while (TakeNext(&task)) {
      task.run();
      task.run = nullptr;
      bool made_room = false;
      {
        base::MutexLock lock(mutex);
        const bool was_high = IsHigh();
        is_running = false;
        last_progress = SystemClock().Now();
        bytes -= task.bytes;
        made_room = was_high && !IsHigh();
      }
      if (made_room && on_room) on_room();
    }
  }
};

FileThread::FileThread(std::function<void()> on_room)
    : shared_(std::make_shared<Shared>(std::move(on_room))) {
  std::thread([shared = shared_] { shared->Serve(); }).detach();
}

FileThread::~FileThread() {
  Instant end = SystemClock().Now() + kFileEndPatience;
  base::MutexLock lock(shared_->mutex);
  shared_->must_end = true;
  shared_->changed.notify_all();
  while (!shared_->has_ended) {
    Duration left = std::min(end, shared_->StuckAt()) - SystemClock().Now();
    if (left <= Duration::zero()) return;
    shared_->changed.wait_for(shared_->mutex, left);
  }
}

bool FileThread::Offer(size_t bytes, std::function<void()> task) {
  base::MutexLock lock(shared_->mutex);
  bool is_full = shared_->tasks.size() >= kFileBacklogTasks ||
                 (shared_->bytes > 0 && shared_->bytes + bytes > kFileBacklogBytes);
  if (is_full) return false;
  shared_->Add({bytes, std::move(task)});
  return true;
}

void FileThread::Post(std::function<void()> task) {
  base::MutexLock lock(shared_->mutex);
  shared_->Add({0, std::move(task)});
}

bool FileThread::HoldsUp(Instant now) const {
  Instant until = HoldsUpUntil();
  return !until.IsNever() && now < until;
}

Instant FileThread::HoldsUpUntil() const {
  base::MutexLock lock(shared_->mutex);
  return shared_->IsHigh() ? shared_->StuckAt() : Instant::Never();
}

Instant FileThread::StuckAt() const {
  base::MutexLock lock(shared_->mutex);
  return shared_->StuckAt();
}

}  // namespace muster::agent
