// How far the ranks of one round have come in agreeing on a step after which all of them save:
//
//   None ──Want──► Wanted ──Name──► Named ──Know, by every node──► Known ──Save──► Saved
//
// Rank 0, which is asked, names the step after the one it is in, and waits before that step until
// all nodes know: no rank can have passed it, since it needs rank 0's contribution. An agreement
// lives as long as its round. A value; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_AGREEMENT_H_
#define MUSTER_RENDEZVOUS_CORE_AGREEMENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::rendezvous {

class Agreement {
 public:
  enum class State { kNone, kWanted, kNamed, kKnown, kSaved };

  State state() const { return state_; }
  // From kNamed on.
  int64_t step() const { return step_; }

  // A checkpoint is to be agreed on. Nothing if one is already.
  void Want();
  // Rank 0 names `step`; there are `nodes` of them to tell. False if nothing is to be told: the
  // step is malformed, or named before. Also without Want(): it may have been asked by a rendezvous
  // that has restarted since.
  bool Name(int64_t step, size_t nodes);
  // The workers of node `index` know that step, or are done. True if they were the last.
  bool Know(size_t index, int64_t step);
  // A checkpoint of `step` counts. True if it is at or after the one agreed on.
  bool Save(int64_t step);

 private:
  State state_ = State::kNone;
  int64_t step_ = -1;
  std::vector<bool> knows_;
  size_t missing_ = 0;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_AGREEMENT_H_
