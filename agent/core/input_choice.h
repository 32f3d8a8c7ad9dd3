// Which workers read the standard input of `muster run`; the others have /dev/null, as several that
// read one stream would steal each other's lines. A value and one pure function.
#ifndef MUSTER_AGENT_CORE_INPUT_CHOICE_H_
#define MUSTER_AGENT_CORE_INPUT_CHOICE_H_

#include "base/ids.h"

namespace muster::agent {

struct InputChoice {
  // kAlone: the worker of a job that can have no other, so that a debugger works.
  enum class Kind { kAlone, kNone, kRank, kAll };
  Kind kind = Kind::kAlone;
  // Of kRank: its rank in the whole job, which gets the input of its own node's `muster run`.
  Rank rank{};

  friend bool operator==(const InputChoice&, const InputChoice&) = default;
};

// `is_alone`: the job can have no other worker.
inline bool GetsInput(const InputChoice& choice, Rank rank, bool is_alone) {
  switch (choice.kind) {
    case InputChoice::Kind::kAlone:
      return is_alone;
    case InputChoice::Kind::kNone:
      return false;
    case InputChoice::Kind::kRank:
      return rank == choice.rank;
    case InputChoice::Kind::kAll:
      break;
  }
  return true;
}

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_INPUT_CHOICE_H_
