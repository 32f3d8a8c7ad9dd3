// std::mutex with clang's thread-safety annotations. Not absl::Mutex: ThreadSanitizer can't see
// into the system's Abseil and would hide races behind it.
#ifndef MUSTER_BASE_MUTEX_H_
#define MUSTER_BASE_MUTEX_H_

#include <mutex>

#if defined(__clang__)
#define MUSTER_TSA(x) __attribute__((x))
#else
#define MUSTER_TSA(x)
#endif

#define MUSTER_GUARDED_BY(x) MUSTER_TSA(guarded_by(x))
#define MUSTER_REQUIRES(...) MUSTER_TSA(requires_capability(__VA_ARGS__))
#define MUSTER_EXCLUDES(...) MUSTER_TSA(locks_excluded(__VA_ARGS__))

namespace muster::base {

// BasicLockable, so it works with std::condition_variable_any as well as with MutexLock.
class MUSTER_TSA(capability("mutex")) Mutex {
 public:
  void lock() MUSTER_TSA(acquire_capability()) { mutex_.lock(); }
  bool try_lock() MUSTER_TSA(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void unlock() MUSTER_TSA(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class MUSTER_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MUSTER_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() MUSTER_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace muster::base

#endif  // MUSTER_BASE_MUTEX_H_
