#include "agent/core/contact.h"

#include <algorithm>
#include <utility>

namespace muster::agent {
namespace {

// The rendezvous' lease ends this much later than ours (DESIGN: 0.5 s); less for very short leases.
constexpr Duration kMargin = std::chrono::milliseconds(500);
// Heartbeats whose acknowledgement may still come. At lease/3 the deadline passes after three.
constexpr size_t kMostUnacknowledged = 16;
constexpr Duration kDefaultLease = std::chrono::seconds(3);
// Heartbeats tell of the workers' progress as well.
constexpr Duration kLongestInterval = std::chrono::seconds(10);
// How long a refusal holds, from when its probe began: less than the second in which a new
// rendezvous is quiet, by enough for the guardian's deadline and for killing.
constexpr Duration kRefusalHolds = std::chrono::milliseconds(700);
// From the beginning of one probe to the next: 250 ms (DESIGN) less what a busy machine adds.
constexpr Duration kProbePause = std::chrono::milliseconds(200);
// A process that is killed closes its connections one after the other, and the listening socket
// perhaps last: so long after the loss a probe may be accepted by one that is dying. Less than the
// 100 ms in which no living rendezvous gives a place away (JobOptions::reattach_grace).
constexpr Duration kMayBeDying = std::chrono::milliseconds(80);
constexpr Duration kDyingProbePause = std::chrono::milliseconds(20);

}  // namespace

Duration Contact::Lease::Margin() const {
  return std::min(kMargin, (IsZero() ? kDefaultLease : length) / 4);
}

Duration Contact::Lease::Usable() const { return (IsZero() ? kDefaultLease : length) - Margin(); }

Contact::Contact(Options options, Instant started)
    : options_(options),
      backoff_(Backoff::Options{.jitter_seed = options.jitter_seed}),
      missing_since_(started) {}

void Contact::Allow(Allowance allowance, Instant now) {
  if (allowance == allowance_) return;
  bool is_in_time = now < deadline();
  allowance_ = allowance;
  if (allowance != Allowance::kReconnectTimeout || !is_in_time) return;
  // With contact in step with the heartbeats, so that a frozen agent's deadline and its lease end
  // as close to each other as ever.
  renewed_until_ = is_attached() ? deadline_ : DeadlineIfHeld(now);
  next_renewal_ = is_attached() ? next_heartbeat_ : now;
}

bool Contact::TakeRenewal(Instant now) {
  if (allowance_ != Allowance::kReconnectTimeout || now < next_renewal_) return false;
  renewed_until_ = DeadlineIfHeld(now);
  next_renewal_ = now + renewal_interval();
  return true;
}

void Contact::Opened(Instant now, bool to_own_address) {
  state_ = State::kAttaching;
  attach_sent_ = now;
  to_own_address_ = to_own_address;
}

void Contact::Attached(Instant now, Duration lease, Duration reconnect_timeout) {
  state_ = State::kAttached;
  lease_.length = lease > Duration(0) ? lease : kDefaultLease;
  if (reconnect_timeout > Duration(0)) options_.reconnect_timeout = reconnect_timeout;
  // Also where that is earlier than before: the rendezvous came back with a shorter lease.
  deadline_ = attach_sent_ + lease_.Usable();
  renewed_until_ = std::min(renewed_until_, DeadlineIfHeld(now));
  // Counted from the sending, as the lease is: a slow answer has used up some of it.
  next_heartbeat_ = std::max(now, attach_sent_ + renewal_interval());
  next_renewal_ = next_heartbeat_;
  unacknowledged_.clear();
  backoff_.Reset();
  first_try_is_left_ = true;
}

void Contact::Lost(Instant now) {
  if (state_ == State::kAttached) Miss(now);
  state_ = State::kPausing;
  unacknowledged_.clear();
  next_heartbeat_ = Instant::Never();
  ScheduleTry(now);
}

void Contact::Closed(Instant now) {
  if (state_ == State::kAttached) Miss(now);
  state_ = State::kClosed;
  unacknowledged_.clear();
  next_heartbeat_ = Instant::Never();
  next_try_ = Instant::Never();
}

void Contact::Miss(Instant now) {
  missing_since_ = now;
  unreplaced_until_ = now;
  was_refused_ = false;
  was_accepted_ = false;
  proves_nothing_ = !to_own_address_;
}

void Contact::Reopen(Instant now) {
  state_ = State::kPausing;
  ScheduleTry(now);
}

void Contact::ScheduleTry(Instant now) {
  next_try_ = first_try_is_left_ && was_ever_attached() ? now : now + backoff_.Next();
  first_try_is_left_ = false;
}

bool Contact::TakeRetry(Instant now) {
  if (state_ != State::kPausing || now < next_try_) return false;
  state_ = State::kConnecting;
  next_try_ = Instant::Never();
  return true;
}

bool Contact::IsMissing() const { return was_ever_attached() && !is_attached(); }

Instant Contact::NextProbe() const {
  bool is_of_use = allowance_ == Allowance::kRefusals && IsMissing() && !proves_nothing_ &&
                   !is_probing_ && state_ != State::kAttaching;
  if (!is_of_use) return Instant::Never();
  return std::max(missing_since_, probe_began_ + (was_refused_ ? kProbePause : kDyingProbePause));
}

bool Contact::TakeProbe(Instant now) {
  if (now < NextProbe()) return false;
  // After one that was accepted the first refusal has to come soon; the next one holds for longer.
  bool is_too_late = was_accepted_ && !was_refused_ ? now - missing_since_ > kMayBeDying
                                                    : now - unreplaced_until_ > kRefusalHolds;
  if (is_too_late) {
    proves_nothing_ = true;
    return false;
  }
  is_probing_ = true;
  probe_began_ = now;
  return true;
}

bool Contact::Probed(bool is_refused) {
  // One that began before contact was lost (for this time) says nothing.
  bool counts = std::exchange(is_probing_, false) && IsMissing() &&
                probe_began_ >= missing_since_ && !proves_nothing_;
  if (!counts) return false;
  if (!is_refused) {
    was_accepted_ = true;
    return false;
  }
  unreplaced_until_ = probe_began_;
  was_refused_ = true;
  return true;
}

std::optional<uint64_t> Contact::TakeHeartbeat(Instant now) {
  if (state_ != State::kAttached || now < next_heartbeat_) return std::nullopt;
  next_heartbeat_ = now + renewal_interval();
  if (unacknowledged_.size() == kMostUnacknowledged) unacknowledged_.pop_front();
  unacknowledged_.push_back({.sequence = ++last_sequence_, .at = now});
  return last_sequence_;
}

void Contact::HastenHeartbeat(Instant now) {
  if (state_ == State::kAttached) next_heartbeat_ = now;
}

bool Contact::Acknowledged(uint64_t sequence) {
  if (state_ != State::kAttached) return false;
  bool moved = false;
  while (!unacknowledged_.empty() && unacknowledged_.front().sequence <= sequence) {
    // A number that was never sent acknowledges nothing.
    if (sequence > last_sequence_) return false;
    deadline_ = std::max(deadline_, unacknowledged_.front().at + lease_.Usable());
    moved = true;
    unacknowledged_.pop_front();
  }
  return moved;
}

Instant Contact::deadline() const {
  Instant most = IsMissing() ? missing_since_ + options_.reconnect_timeout : Instant::Never();
  switch (allowance_) {
    case Allowance::kLease:
      break;
    case Allowance::kRefusals:
      if (!was_refused_ || !IsMissing()) break;
      return std::max(deadline_, std::min(unreplaced_until_ + kRefusalHolds, most));
    case Allowance::kReconnectTimeout:
      return std::max(deadline_, std::min(renewed_until_, most));
  }
  return deadline_;
}

bool Contact::IsUnanswered(Instant now) const {
  return state_ == State::kAttaching && now >= attach_sent_ + kAttachPatience;
}

Duration Contact::patience() const {
  return was_ever_attached() ? options_.reconnect_timeout : options_.join_timeout;
}

Instant Contact::gives_up_at() const {
  bool is_waiting_for_nobody = state_ == State::kAttached || state_ == State::kClosed;
  if (is_waiting_for_nobody) return Instant::Never();
  Instant patient_until = missing_since_ + patience();
  // Whoever has been reached may still answer, also with how the job ended.
  bool is_reached = state_ == State::kAttaching;
  return is_reached ? std::max(patient_until, attach_sent_ + kAttachPatience) : patient_until;
}

Duration Contact::renewal_interval() const {
  return std::min(kLongestInterval, (lease_.IsZero() ? kDefaultLease : lease_.length) / 3);
}

Instant Contact::DeadlineIfHeld(Instant now) const { return now + lease_.Usable(); }

Instant Contact::NextWakeup() const {
  Instant next = std::min({gives_up_at(), next_try_, next_heartbeat_, NextProbe()});
  if (state_ == State::kAttaching) next = std::min(next, attach_sent_ + kAttachPatience);
  if (allowance_ != Allowance::kReconnectTimeout) return next;
  // The stream has to be given up on though workers don't depend on it.
  if (is_attached()) next = std::min(next, deadline_);
  return std::min(next, next_renewal_);
}

}  // namespace muster::agent
