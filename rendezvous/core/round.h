// One round as the job's rules see it: its world, a slot for each node, why it stops, and what was
// reported in it. Plain data with the counts kept right; owned by the job's rules.
#ifndef MUSTER_RENDEZVOUS_CORE_ROUND_H_
#define MUSTER_RENDEZVOUS_CORE_ROUND_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/session_messages.h"
#include "rendezvous/core/agreement.h"
#include "rendezvous/core/commit_table.h"
#include "rendezvous/core/member.h"
#include "rendezvous/core/verdict.h"

namespace muster::rendezvous {

enum class SlotState {
  kMissing,    // recovered: its agent has not re-attached yet
  kRunning,    // workers run, or are told to stop and have not answered
  kSucceeded,  // all its workers exited 0, and the agent was told that this is noted
  kDone,       // succeeded, and its agent is gone: costs nothing
  kStopped,    // no worker of the round is left there
  kLost,       // its agent was lost before it acknowledged anything
};

struct Slot {
  SlotState state = SlotState::kMissing;
  // Null when the agent is missing or gone; must be a member of the job otherwise.
  Member* member = nullptr;
  GroupRank group_rank;
  Rank first_rank;
  int worker_count = 0;
};

// What made a round stop first; decides whether failures in it are charged.
enum class StopOrigin {
  kFailure,     // a worker failed while the round was whole
  kLoss,        // an agent was lost
  kMembership,  // a node joins or leaves in order
  kVanished,    // an agent came back without its workers and hasn't said why yet
};

struct Round {
  World world;
  RoundKey key;
  std::vector<Slot> slots;
  int world_size = 0;
  int restarts_charged = 0;
  std::string master_address;
  uint16_t master_port = 0;
  std::optional<Commit> resume;
  Instant began;
  // Meaningful once `stop` is there.
  Instant stop_began;
  // The highest step that a worker of it is known to have completed; -1: none.
  int64_t last_step = -1;
  // A worker of it has exited 0.
  bool has_success = false;
  // Rebuilt from reports after a restart of the rendezvous: key and master are unknown.
  bool is_recovered = false;
  // Why it stops; none while it runs.
  std::optional<StopRound> stop;
  StopOrigin stop_origin = StopOrigin::kMembership;
  // For kVanished: whose failure may still explain it.
  std::optional<size_t> vanished_slot;
  // An agent was lost before it acknowledged the stop: nothing is charged.
  bool had_loss = false;
  FailureList failures;
  CommitTable commits;
  // On a step to save after, so that nodes can leave.
  Agreement agreement;
  // Rank 0's agent waits for the CommitNoted of the newest commit: it is told after the StopRound
  // that the commit allows, so that no step begins that is thrown away.
  bool is_note_withheld = false;
  // Slots that have a member.
  size_t occupied = 0;

  void Resize(size_t nodes) {
    slots.assign(nodes, Slot());
    counts = {};
    counts[static_cast<size_t>(SlotState::kMissing)] = static_cast<int>(nodes);
  }
  void Set(Slot& slot, SlotState state) {
    --counts[static_cast<size_t>(slot.state)];
    slot.state = state;
    ++counts[static_cast<size_t>(state)];
  }
  int Count(SlotState state) const { return counts[static_cast<size_t>(state)]; }
  bool AllSucceeded() const {
    return Count(SlotState::kSucceeded) + Count(SlotState::kDone) == static_cast<int>(slots.size());
  }

  std::array<int, 6> counts{};
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_ROUND_H_
