// When a round that is open for nodes may close and start: the one decision of Gathering and
// Closing, as a function of counts and times. Pure; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_ROUND_POLICY_H_
#define MUSTER_RENDEZVOUS_CORE_ROUND_POLICY_H_

#include <optional>
#include <string>

#include "base/instant.h"

namespace muster::rendezvous {

// DESIGN: leaves within this are one event.
inline constexpr Duration kDepartureWindow = std::chrono::milliseconds(500);

struct RoundQuestion {
  Instant now;
  int min_nodes = 1;
  int max_nodes = 1;
  // Nodes that can start at once: attached, without a worker of an earlier round.
  int ready_nodes = 0;
  // Nodes whose stream is broken and that may still come back (`reattach_grace`).
  int returning_nodes = 0;
  // A round of this job ran before in this life of the rendezvous: nobody waits for a last call.
  bool is_reforming = false;
  // When `min_nodes` were first ready in this gathering. Falling below MIN and reaching it again
  // doesn't move it, so a flapping node can't hold the round open.
  std::optional<Instant> min_first_reached;
  Duration last_call_timeout{0};
  // No round closes before this (`startup_quiet`).
  Instant quiet_until;
  // Those who run a round of which this rendezvous has only heard would have come back by then.
  Instant elsewhere_until;
  // A node has left, and others that leave with it are waited for.
  Instant form_not_before;
};

struct RoundAnswer {
  bool may_close = false;
  // If it may not: when to ask again though nothing else changes; Never() if only a change helps.
  Instant ask_again = Instant::Never();
  // Why, for people: "2 of 2..4 nodes are here; waiting 30 s for more".
  std::string reason;
};

RoundAnswer MayCloseRound(const RoundQuestion& question);

// "1 node" or "3 nodes".
std::string Counted(int count, const std::string& noun);

// "3 nodes" or "2..4 nodes".
std::string NodeRange(int min_nodes, int max_nodes);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_ROUND_POLICY_H_
