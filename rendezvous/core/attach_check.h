// May this agent be in this job at all? Checks what an Attach says of itself, and against the job's
// terms, which are those of its first agent. Each answer is one sentence for the person who started
// the node: both values and what to do. Pure; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_ATTACH_CHECK_H_
#define MUSTER_RENDEZVOUS_CORE_ATTACH_CHECK_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::rendezvous {

// Rounds above this are refused as nonsense: a job that restarts every second for 30 years has
// fewer, and the next round's number must not overflow.
inline constexpr uint64_t kMaxRound = uint64_t{1} << 30;
// More nodes than a job is made for are refused as nonsense, and more workers on one node.
inline constexpr int kMaxNodes = 1 << 17;
inline constexpr int kMaxWorkersPerNode = 1 << 12;

// What is wrong with `attach` whatever the job; none if nothing is.
std::optional<std::string> MalformedAttach(const Attach& attach);

// What a node knows of the job from before it attached: the more, the greater.
struct JobPast {
  // The highest round of it that the node has seen; 0: none.
  RoundId round;
  // It was in the job's room before, maybe as a spare.
  bool was_attached = false;
  friend auto operator<=>(const JobPast&, const JobPast&) = default;
};

JobPast PastOf(const Attach& attach);

// Who came first, and with it the job's terms.
struct Opener {
  std::string node_name;
  std::string address;
  JobPast past;
};

// Where `attach` differs from the terms of the job that `opener` opened; none if nowhere.
std::optional<std::string> Disagreement(const JobTerms& job, const Opener& opener,
                                        const Attach& attach);

// That the node of a static job runs another program than `opener`, for people; empty if it
// doesn't. There --node-rank says whose each place is, and many a script takes the node's number as
// an argument. In an elastic job it is a disagreement: two jobs that use one run id would be
// merged.
std::string OtherStaticProgram(const JobTerms& job, const Opener& opener, const Attach& attach);

// Why these two nodes can't work together: the address of one is loopback, which only its own host
// reaches, and the other's isn't. None if nothing is wrong, or if an address is a name.
std::optional<std::string> AddressProblem(const Opener& opener, const Attach& attach);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_ATTACH_CHECK_H_
