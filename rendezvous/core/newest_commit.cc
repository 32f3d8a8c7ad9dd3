#include "rendezvous/core/newest_commit.h"

namespace muster::rendezvous {

bool NewestCommit::Learn(const std::optional<Commit>& commit, RoundId told_in) {
  if (!commit) return false;
  // Reports of one round differ only by age, and none is newer than what was committed here.
  bool is_newer = !commit_ || round_ < told_in ||
                  (round_ == told_in && !is_ours_ && commit_->step < commit->step);
  if (commit_ && formed_.value > 0 && is_ours_) {
    is_newer = told_in > formed_ && commit_->step < commit->step;
  }
  if (!is_newer || (is_base_ && commit_ == commit)) return false;
  // The same one is often told by all who saw the next round.
  const bool is_news = commit_ != commit;
  commit_ = commit;
  round_ = told_in;
  is_ours_ = is_base_ = false;
  return is_news;
}

void NewestCommit::RoundIsFormed(RoundId round) {
  formed_ = round;
  is_base_ = commit_.has_value();
}

bool NewestCommit::Add(const Commit& commit, RoundId round) {
  // Agents may have told of a newer one: they heard of it in this round, before a restart of the
  // rendezvous, or in a later one. A lower step than that of an earlier round is new.
  bool is_older = commit_ && (round < round_ || (round == round_ && commit.step <= commit_->step));
  const bool is_of_another_world = formed_.value > 0 && !is_ours_ && !is_base_;
  if (commit_ && is_of_another_world) is_older = commit.step <= commit_->step;
  if (is_older) return false;
  commit_ = commit;
  round_ = round;
  is_ours_ = true;
  is_base_ = false;
  return true;
}

}  // namespace muster::rendezvous
