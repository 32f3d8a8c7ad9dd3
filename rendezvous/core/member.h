// What the job's rules keep about each agent that is in the job's room: who it is, whether its
// stream is open, and its place in the current round. Plain data, owned by the job's rules; used on
// their thread only.
#ifndef MUSTER_RENDEZVOUS_CORE_MEMBER_H_
#define MUSTER_RENDEZVOUS_CORE_MEMBER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/instant.h"
#include "base/session_messages.h"

namespace muster::rendezvous {

// One incarnation in the order of its first arrival in this life of the rendezvous.
using MemberId = StrongInt<struct MemberTag, uint64_t>;

struct Member {
  MemberId id;
  // As it last attached; `running` is cleared, `candidate_port` kept up to date.
  Attach attach;
  // None while its stream is broken and it may still come back.
  std::optional<SessionId> session;
  Instant last_message;
  // When `attach` came.
  Instant attached_at;
  // Index among the slots of the current round; none for spares and those who wait.
  std::optional<size_t> slot;
  // Group rank in the last round it took part in: survivors keep their order.
  std::optional<GroupRank> last_group_rank;
  // It came without workers though it has seen the round that is being recovered: its place in that
  // round is empty.
  bool lost_recovered_round = false;
  // Lost too often (--max-node-failures): takes no part until then, unless it is needed.
  std::optional<Instant> set_aside_until;
  // Its workers can be asked to save after a step, as it last said.
  bool can_save = false;
  // It wants to go, or was drained: it goes at the end of the round, or at once if it has no part
  // in one.
  struct Departure {
    // For people: "preempted (SIGTERM)".
    std::string reason;
    bool is_drained = false;
    static Departure ByDrain() { return {.reason = "drained", .is_drained = true}; }
  };
  std::optional<Departure> departure;
  // The last Notice it was sent, and the round that it named, so that none is repeated.
  std::string told;
  RoundId told_round;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_MEMBER_H_
