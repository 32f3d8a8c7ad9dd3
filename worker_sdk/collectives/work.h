// An operation that was started and may still run. A handle: copies mean the same operation, and
// dropping all of them doesn't cancel it. Thread-safe.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_WORK_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_WORK_H_

#include <memory>

#include "worker_sdk/context/status.h"

namespace muster {

class Work {
 public:
  // The state that the group's thread and all handles share.
  class State;

  // An operation that is done with this outcome.
  explicit Work(Status done);
  // shared_ptr: the operation outlives whichever of group and handles goes first.
  explicit Work(std::shared_ptr<State> state);

  // True once Wait() would return at once.
  bool IsDone() const;
  // Blocks until the operation is done; may be called again and from any thread. The buffers of the
  // operation belong to the group until then. kAborted with lost_rank(): a peer is gone.
  Status Wait() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_WORK_H_
