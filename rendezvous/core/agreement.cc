#include "rendezvous/core/agreement.h"

namespace muster::rendezvous {

void Agreement::Want() {
  if (state_ == State::kNone) state_ = State::kWanted;
}

bool Agreement::Name(int64_t step, size_t nodes) {
  if (step < 0 || step <= step_) return false;
  state_ = State::kNamed;
  step_ = step;
  knows_.assign(nodes, false);
  missing_ = nodes;
  return true;
}

bool Agreement::Know(size_t index, int64_t step) {
  if (state_ != State::kNamed || step != step_ || index >= knows_.size() || knows_[index]) {
    return false;
  }
  knows_[index] = true;
  if (--missing_ > 0) return false;
  state_ = State::kKnown;
  return true;
}

bool Agreement::Save(int64_t step) {
  if (state_ != State::kKnown || step < step_) return false;
  state_ = State::kSaved;
  return true;
}

}  // namespace muster::rendezvous
