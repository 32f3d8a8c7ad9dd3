// What is true, whatever the machines believe: every world that was ever formed, who is in it,
// which of its workers run, why it may end, and its checkpoints on storage. The agents and the
// rendezvous of the simulation write it, the invariants read it, and no machine sees it. One
// thread.
#ifndef MUSTER_TESTS_SIMULATION_WORLDS_H_
#define MUSTER_TESTS_SIMULATION_WORLDS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::simulation {

using WorldIndex = int;

struct WorldMember {
  int agent = 0;  // AgentIndex
  StartRound place{};
  int worker_count = 0;
  bool has_spawned = false;
  // StopDone of this world came to the rendezvous.
  bool has_acknowledged = false;
  // It was told that its success is noted: its loss costs nothing from then on.
  bool is_success_noted = false;
};

struct WorldRecord {
  World world{};
  RoundKey key{};
  int world_size = 0;
  int attempt = 0;
  int restarts_charged = 0;
  std::optional<Commit> resume{};
  // By group rank.
  std::vector<WorldMember> members{};

  // RoundOver was said.
  bool is_over = false;
  int started_workers = 0;
  int succeeded_workers = 0;
  // A worker ended otherwise than with 0, or was told to stop: nobody gets further.
  bool is_broken = false;
  bool is_complete = false;
  bool is_finishing = false;
  // Something has happened for which a round may end.
  bool has_excuse = false;
  // A node, the rendezvous or the network was in trouble.
  bool was_disturbed = false;
  // A node came that it has a place for.
  bool had_join = false;
  // Workers that failed by themselves, not because a peer, their agent or their guardian was lost.
  std::vector<WorkerFailure> failures{};

  // The checkpoint under way.
  std::optional<Commit> pending{};
  bool is_granted = false;
  bool is_published = false;
  std::vector<bool> shard_arrived{};  // at the rendezvous, by rank
  // The step that rank 0 has named to save after, until that is done; and who knows of it.
  std::optional<int64_t> named_step{};
  std::vector<bool> knows_step{};
  // A node of it was drained: no step may begin that is thrown away.
  bool was_drained = false;
  // The rendezvous that runs now has told rank 0 that all know the step to save after: one that
  // restarts before that checkpoint counts can't know whom it is for.
  bool was_agreed = false;
  int64_t last_step = 0;
  // The highest step that workers told their agents of; -1: none.
  int64_t reported_step = -1;
  // As the rendezvous said: its start and its first StopRound.
  Instant began{};
  Instant stop_began = Instant::Never();
  // The rendezvous heard that a worker of it has exited 0.
  bool is_success_known = false;
  // What was ever granted, and what counts.
  std::vector<Commit> granted{};
  std::optional<Commit> committed{};
};

// The workers that run under one life of an agent, whether or not it still lives.
struct LiveWorkers {
  int host = 0;
  WorldIndex world = -1;
  int count = 0;
};

class Worlds {
 public:
  // By AgentIndex.
  std::vector<LiveWorkers> live;

  WorldIndex Add(WorldRecord record) {
    records_.push_back(std::move(record));
    return static_cast<WorldIndex>(records_.size()) - 1;
  }
  WorldRecord& operator[](WorldIndex index) { return records_[index]; }
  const WorldRecord& operator[](WorldIndex index) const { return records_[index]; }
  int size() const { return static_cast<int>(records_.size()); }

  // -1 if it was never formed. Newest first, since those are asked for.
  WorldIndex Find(const World& world) const {
    for (int i = size() - 1; i >= 0; --i) {
      if (records_[i].world == world) return i;
    }
    return -1;
  }

  WorldMember* FindMember(const World& world, int agent) {
    WorldIndex index = Find(world);
    if (index < 0) return nullptr;
    for (WorldMember& member : records_[index].members) {
      if (member.agent == agent) return &member;
    }
    return nullptr;
  }

  // `agent` is in trouble until then; -1: all are. Its worlds, and those that begin with it
  // meanwhile, may end.
  void Trouble(int agent, Instant until) {
    if (agent < 0) {
      all_troubled_until_ = std::max(all_troubled_until_, until);
    } else {
      troubled_until_.resize(std::max(troubled_until_.size(), live.size()));
      troubled_until_[agent] = std::max(troubled_until_[agent], until);
    }
    for (WorldRecord& record : records_) {
      if (record.was_disturbed) continue;
      for (const WorldMember& member : record.members) {
        if (agent < 0 || member.agent == agent) record.has_excuse = record.was_disturbed = true;
      }
    }
  }

  // `agent` is sent away in order: its worlds may end.
  void Drain(int agent) {
    for (WorldRecord& record : records_) {
      if (record.is_over) continue;
      for (const WorldMember& member : record.members) {
        if (member.agent == agent) record.has_excuse = record.was_drained = true;
      }
    }
  }

  // Worlds that don't run yet, or are being stopped, may end.
  void TroubleIncomplete() {
    for (WorldRecord& record : records_) {
      if (!record.is_complete || record.is_broken) record.has_excuse = record.was_disturbed = true;
    }
  }

  bool IsTroubled(int agent, Instant now) const {
    auto index = static_cast<size_t>(agent);
    return now < all_troubled_until_ ||
           (index < troubled_until_.size() && now < troubled_until_[index]);
  }

 private:
  std::vector<WorldRecord> records_;
  Instant all_troubled_until_;
  std::vector<Instant> troubled_until_;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_WORLDS_H_
