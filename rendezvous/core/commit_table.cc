#include "rendezvous/core/commit_table.h"

namespace muster::rendezvous {

CommitTable::Outcome CommitTable::Report(const ShardReport& report, int world_size) {
  const Commit& commit = report.commit;
  const std::string step = "step " + std::to_string(commit.step);
  if (report.rank.value < 0 || report.rank.value >= world_size || report.shard_count < 1 ||
      report.shard_count > world_size) {
    return {Answer::kRefuse, step + ": rank " + std::to_string(report.rank.value) + " of " +
                                 std::to_string(report.shard_count) +
                                 " shards doesn't fit a world of " + std::to_string(world_size)};
  }
  if (committed_ && commit == *committed_) return {Answer::kCommitted, ""};
  if (committed_ && commit.step <= committed_->step) {
    return {Answer::kRefuse, step + " is not after step " + std::to_string(committed_->step) +
                                 ", which this round has committed"};
  }
  Open& open = open_[commit.step];
  if (open.ranks.empty()) {
    open.commit = commit;
    open.shard_count = report.shard_count;
  } else if (open.commit.directory != commit.directory || open.shard_count != report.shard_count) {
    return {Answer::kRefuse,
            step + ": rank " + std::to_string(report.rank.value) + " wrote " + commit.directory +
                " as one of " + std::to_string(report.shard_count) + " shards, others " +
                open.commit.directory + " as one of " + std::to_string(open.shard_count)};
  }
  open.ranks.insert(report.rank);
  const bool is_complete = open.ranks.size() == static_cast<size_t>(open.shard_count);
  if (open_.size() > kMaxOpen) open_.erase(open_.begin());
  if (open_.find(commit.step) == open_.end()) {
    return {Answer::kRefuse, step + " is given up: " + std::to_string(kMaxOpen) +
                                 " newer checkpoints are under way"};
  }
  return {is_complete ? Answer::kGrant : Answer::kWait, ""};
}

bool CommitTable::Publish(const Commit& commit) {
  if (committed_ && commit.step <= committed_->step) return false;
  committed_ = commit;
  open_.erase(open_.begin(), open_.upper_bound(commit.step));
  return true;
}

std::optional<Commit> CommitTable::OpenGrant() const {
  for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
    if (open->second.ranks.size() == static_cast<size_t>(open->second.shard_count)) {
      return open->second.commit;
    }
  }
  return std::nullopt;
}

}  // namespace muster::rendezvous
