// What the group's thread and all Work handles of one operation share: is it done, and how it
// ended. For implementations of ProcessGroup. Thread-safe.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_WORK_STATE_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_WORK_STATE_H_

#include <condition_variable>

#include "base/mutex.h"
#include "worker_sdk/collectives/work.h"
#include "worker_sdk/context/status.h"

namespace muster {

class Work::State {
 public:
  // Called once, by the group.
  void Finish(Status status);
  bool IsDone() const;
  Status Wait() const;

 private:
  mutable base::Mutex mutex_;
  mutable std::condition_variable_any finished_;
  bool is_done_ MUSTER_GUARDED_BY(mutex_) = false;
  Status status_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_WORK_STATE_H_
