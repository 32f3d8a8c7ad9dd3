#include "worker_sdk/collectives/work.h"

#include <utility>

#include "base/check.h"
#include "worker_sdk/collectives/work_state.h"

namespace muster {

void Work::State::Finish(Status status) {
  base::MutexLock lock(mutex_);
  MUSTER_CHECK(!is_done_);
  is_done_ = true;
  status_ = std::move(status);
  finished_.notify_all();
}

bool Work::State::IsDone() const {
  base::MutexLock lock(mutex_);
  return is_done_;
}

Status Work::State::Wait() const {
  base::MutexLock lock(mutex_);
  while (!is_done_) finished_.wait(mutex_);
  return status_;
}

Work::Work(Status done) : state_(std::make_shared<State>()) { state_->Finish(std::move(done)); }

Work::Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

bool Work::IsDone() const { return state_->IsDone(); }

Status Work::Wait() const { return state_->Wait(); }

}  // namespace muster
