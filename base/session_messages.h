// What an agent and the rendezvous say to each other, as plain structs: the vocabulary that the
// cores on both sides share. proto/rendezvous.proto is the same on the wire, and
// proto/session_convert.h the only place that turns one into the other. Values; no behaviour.
#ifndef MUSTER_BASE_SESSION_MESSAGES_H_
#define MUSTER_BASE_SESSION_MESSAGES_H_

#include <string>

#include "base/agent_messages.h"
#include "base/ids.h"
#include "base/job_types.h"
#include "base/rendezvous_messages.h"

namespace muster {

// Names the worker's round in every key-value call; a call for another round is refused.
struct RoundScope {
  std::string run_id;
  Incarnation incarnation;
  World world;
  friend bool operator==(const RoundScope&, const RoundScope&) = default;
};

}  // namespace muster

#endif  // MUSTER_BASE_SESSION_MESSAGES_H_
