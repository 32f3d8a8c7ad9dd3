// Which of the commits that a rendezvous hears of is the newest: those that rank 0 makes in a round
// here, what agents tell that were in the job before this rendezvous, and what an earlier life of
// it kept. Steps alone don't tell: a round that went back behind a damaged checkpoint commits lower
// ones. A value.
#ifndef MUSTER_RENDEZVOUS_CORE_NEWEST_COMMIT_H_
#define MUSTER_RENDEZVOUS_CORE_NEWEST_COMMIT_H_

#include <optional>

#include "base/ids.h"
#include "base/job_types.h"

namespace muster::rendezvous {

class NewestCommit {
 public:
  // An agent, or this rendezvous' earlier life, knows of `commit`; `told_in` is the latest round
  // that it has seen. Each round resumes from the newest, so who saw a later round knows better.
  // True if it is news.
  bool Learn(const std::optional<Commit>& commit, RoundId told_in);
  // This rendezvous has formed the round itself. It goes on from what is known, and all that is
  // committed from here on is committed here: who tells of something else comes from a world beside
  // it, and between the two the higher step counts.
  void RoundIsFormed(RoundId round);
  // Rank 0 of `round` has made it. False if it is older than what is known already.
  bool Add(const Commit& commit, RoundId round);

  bool has_value() const { return commit_.has_value(); }
  const std::optional<Commit>& get() const { return commit_; }
  const Commit& operator*() const { return *commit_; }
  const Commit* operator->() const { return &*commit_; }
  // The round that made it, or the latest that was seen by the agent that told of it.
  RoundId round() const { return round_; }

 private:
  std::optional<Commit> commit_;
  RoundId round_;
  // Made in a round here: what others tell of that round is older.
  bool is_ours_ = false;
  // It was known when the last round was formed here, which may go back behind it.
  bool is_base_ = false;
  // The last that was formed here; 0: none.
  RoundId formed_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_NEWEST_COMMIT_H_
