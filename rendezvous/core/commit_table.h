// Which checkpoints of the current round are complete, granted and committed. Ranks report durable
// shards; the report that completes a step grants its commit to rank 0, which publishes it. A table
// lives as long as its round: what was granted is void after.
// A value; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_COMMIT_TABLE_H_
#define MUSTER_RENDEZVOUS_CORE_COMMIT_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/session_messages.h"

namespace muster::rendezvous {

class CommitTable {
 public:
  // Checkpoints that may be under way at once; the oldest is given up for a newer one.
  static constexpr size_t kMaxOpen = 8;

  enum class Answer {
    // Noted; shards of other ranks are missing.
    kWait,
    // All shards are there: rank 0 may publish. Also the answer to a repeated report.
    kGrant,
    // This step was committed in this round before: a late repetition.
    kCommitted,
    // See `reason`.
    kRefuse,
  };

  struct Outcome {
    Answer answer = Answer::kRefuse;
    std::string reason;
  };

  // Rank `report.rank` has its shard on disk. `world_size` bounds ranks and shards.
  Outcome Report(const ShardReport& report, int world_size);
  // Rank 0 published `commit`. False if this round committed that step or a newer one before.
  bool Publish(const Commit& commit);
  // The newest checkpoint that is granted and not yet published.
  std::optional<Commit> OpenGrant() const;

 private:
  struct Open {
    Commit commit;
    int shard_count = 0;
    std::set<Rank> ranks;
  };

  std::map<int64_t, Open> open_;
  std::optional<Commit> committed_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_COMMIT_TABLE_H_
