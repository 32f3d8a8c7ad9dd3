// Whether this agent is in contact with its rendezvous, and what that needs next: the heartbeats,
// the lease deadline that follows from acknowledged ones, the tries to reach it again, and when to
// give up. A value with time as an argument; owned by the agent's machine; not thread-safe.
//
// The deadline is counted from when an acknowledged message was *sent*, less a margin: the
// rendezvous counts from receipt, which is later, so this side always stops first.
//
// What workers may do beyond that deadline while contact is missing is the caller's to say:
//
//   kLease            nothing
//   kRefusals         live on while nobody can have formed a round without this node
//   kReconnectTimeout live on until contact is given up on: they are fenced by other means, or the
//                     user wants it so
//
// What kRefusals rests on: a plain connect() that is refused proves that nobody listened at that
// address when the try began, and a rendezvous that started later forms no round in its first
// second (JobOptions::startup_quiet). So a probe must be refused before a living rendezvous would
// have given this node's place away, 80 ms after the loss (until then one that is accepted may have
// met a process that is dying; later, that the rendezvous lives and goes on without us), and
// refused probes must follow each other so closely that none can have formed a round in between;
// then the deadline moves along with them, for reconnect_timeout at most. An answer of another kind
// between two refused probes proves nothing, but costs nothing either if the next one is in time.
// All this needs an endpoint that is one address, and the rendezvous' own: behind a virtual address
// a refusal says nothing of the process. (Once another endpoint may take a lost rendezvous over, it
// can do so without our probes seeing it: then the probes have to go to every candidate, and this
// is the place that judges their answers.)
#ifndef MUSTER_AGENT_CORE_CONTACT_H_
#define MUSTER_AGENT_CORE_CONTACT_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "base/backoff.h"
#include "base/instant.h"

namespace muster::agent {

class Contact {
 public:
  struct Options {
    // Until the first Attached.
    Duration join_timeout{0};
    // After that; the rendezvous' own figure replaces it.
    Duration reconnect_timeout{0};
    // Differs between agents.
    uint64_t jitter_seed = 0;
  };

  // How long workers live without contact; see above.
  enum class Allowance { kLease, kRefusals, kReconnectTimeout };

  // An open stream on which nobody answers Attach this long is dropped. A rendezvous that 10,000
  // agents reach at once answers within a few seconds.
  static constexpr Duration kAttachPatience = std::chrono::seconds(10);

  enum class State {
    kConnecting,  // a stream is being opened
    kAttaching,   // Attach was sent
    kAttached,
    kPausing,  // until the next try
    kClosed,   // by us, for good or until Reopen()
  };

  Contact(Options options, Instant started);

  State state() const { return state_; }
  bool is_attached() const { return state_ == State::kAttached; }
  bool was_ever_attached() const { return !lease_.IsZero(); }
  // As the rendezvous set it; zero before the first Attached.
  Duration lease() const { return lease_.length; }
  // The part of it after which this side stops: heartbeats are due every third of the lease, so
  // that of 3 s workers live on for 1.5 to 2.5 s after the rendezvous has fallen silent.
  Duration usable_lease() const { return lease_.Usable(); }

  // Holds until the next call.
  void Allow(Allowance allowance, Instant now);

  // The stream is open and Attach is being sent. `to_own_address`: the rendezvous listens at the
  // one address that was connected to, as its own.
  void Opened(Instant now, bool to_own_address);
  void Attached(Instant now, Duration lease, Duration reconnect_timeout);
  // The stream broke, is given up on, or couldn't be opened.
  void Lost(Instant now);
  // We closed the stream.
  void Closed(Instant now);
  // After Closed(): a try is due at once, or after a pause if there were tries since Attached().
  void Reopen(Instant now);

  // True once for each try that is due: Connect now.
  bool TakeRetry(Instant now);
  // True once for each probe that is due: connect to the endpoint and tell how that went.
  bool TakeProbe(Instant now);
  // `is_refused`: ECONNREFUSED. True if it moved the deadline.
  bool Probed(bool is_refused);
  // The sequence number of a heartbeat to send now, if one is due.
  std::optional<uint64_t> TakeHeartbeat(Instant now);
  // One is due now: it carries news.
  void HastenHeartbeat(Instant now);
  // True if it moved the deadline.
  bool Acknowledged(uint64_t sequence);

  // Our workers must not live past this without a new acknowledgement or what else allows it.
  // Never() before the first Attached.
  Instant deadline() const;
  // The guardian's, for an agent that is frozen: between ours and the lease's end. At ours it would
  // race with us, and kill workers of an agent that has just reached the rendezvous again.
  Instant guardian_deadline() const { return deadline() + lease_.Margin() / 2; }
  bool DeadlineIsOver(Instant now) const { return now >= deadline(); }
  // A stream on which nothing was acknowledged for the length of the lease.
  bool IsSilent(Instant now) const { return is_attached() && now >= deadline_; }
  // With kReconnectTimeout: true whenever the deadline has moved because this agent still runs. A
  // frozen one is noticed as soon as with contact.
  bool TakeRenewal(Instant now);
  // An Attach that nobody answers; the stream should be given up on.
  bool IsUnanswered(Instant now) const;
  // When to give up for good; Never() while attached or closed.
  Instant gives_up_at() const;
  // How long contact has been missing at most before giving up.
  Duration patience() const;
  // How often the deadline has to be renewed, lease/3 but at most 10 s; a default before the first
  // Attached.
  Duration renewal_interval() const;
  // For an agent whose job is over: what the deadline would be if contact held.
  Instant DeadlineIfHeld(Instant now) const;

  Instant NextWakeup() const;

 private:
  struct Lease {
    Duration length{0};
    bool IsZero() const { return length == Duration(0); }
    Duration Margin() const;
    Duration Usable() const;
  };
  struct Sent {
    uint64_t sequence;
    Instant at;
  };

  void ScheduleTry(Instant now);
  void Miss(Instant now);
  bool IsMissing() const;
  // Whether a refused probe can still prove anything, and when the next one is due.
  Instant NextProbe() const;

  Options options_;
  Backoff backoff_;
  State state_ = State::kConnecting;
  Lease lease_;
  // Since when contact is missing; the start, until the first Attached.
  Instant missing_since_;
  // By the lease alone.
  Instant deadline_ = Instant::Never();
  Allowance allowance_ = Allowance::kLease;
  // Of the last stream that was open.
  bool to_own_address_ = false;
  // Until then nobody can have formed a round without us: when contact was lost, then when the last
  // probe began that was refused soon enough after.
  Instant unreplaced_until_;
  bool was_refused_ = false;
  // A probe got another answer.
  bool was_accepted_ = false;
  // No probe was refused soon enough after the loss, or after the one before.
  bool proves_nothing_ = false;
  bool is_probing_ = false;
  Instant probe_began_;
  // With kReconnectTimeout: what this agent's running is worth, and when it is due to be noted.
  Instant renewed_until_;
  Instant next_renewal_;
  Instant attach_sent_;
  Instant next_try_ = Instant::Never();
  Instant next_heartbeat_ = Instant::Never();
  bool first_try_is_left_ = true;
  uint64_t last_sequence_ = 0;
  std::deque<Sent> unacknowledged_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_CONTACT_H_
