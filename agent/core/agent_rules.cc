#include "agent/core/agent_rules.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "agent/core/own_verdict.h"
#include "base/visible_text.h"

namespace muster::agent {
namespace {

uint64_t JitterSeed(const Incarnation& incarnation) {
  uint64_t seed = 0;
  std::memcpy(&seed, incarnation.bytes.data(), sizeof seed);
  return seed;
}

}  // namespace

AgentRules::AgentRules(AgentOptions options, Incarnation incarnation, Instant started)
    : options_(std::move(options)),
      times_{.shutdown_timeout = options_.shutdown_timeout,
             .lost_peer_grace = options_.lost_peer_grace},
      incarnation_(incarnation),
      contact_({.join_timeout = options_.join_timeout,
                .reconnect_timeout = options_.reconnect_timeout,
                .jitter_seed = JitterSeed(incarnation)},
               started),
      hang_watch_(options_.hang_timeout),
      now_(started) {}

// ---- steps ---------------------------------------------------------------------------------

std::vector<AgentEffect> AgentRules::Step(const StepInput& input, const AgentEvent& event) {
  if (has_ended_) return {};
  now_ = input.now;
  fresh_incarnation_ = input.fresh_incarnation;
  contact_.Allow(Allowance(), now_);
  // An acknowledgement counts even if it waited in our queue; everything else is judged by a node
  // whose lease may be over: a worker that the guardian killed at the deadline has not failed.
  const auto* said = std::get_if<RendezvousSaid>(&event);
  bool is_ack = said != nullptr && std::holds_alternative<HeartbeatAck>(said->message);
  // But not one that comes after the guardian's deadline: it has killed the workers by then. How
  // the job ended is true however late it is read.
  const bool is_end = said != nullptr && std::holds_alternative<JobEnded>(said->message);
  if (!is_end) CheckPatience();
  const bool is_in_time = is_ack && now_ < contact_.guardian_deadline();
  if (!is_end && !is_in_time) CheckLease();
  if (!has_ended_) std::visit([this](const auto& e) { On(e); }, event);
  if (!has_ended_) ServeTimers();
  return std::exchange(effects_, {});
}

Instant AgentRules::NextWakeup() const {
  if (has_ended_) return Instant::Never();
  Instant next = std::min({contact_.NextWakeup(), next_renewal_, DepartureDue()});
  if (group_ && group_->is_live()) next = std::min(next, hang_watch_.NextWakeup());
  return LeaseMatters() ? std::min(next, contact_.deadline()) : next;
}

void AgentRules::ServeTimers() {
  contact_.Allow(Allowance(), now_);
  CheckPatience();
  if (!has_ended_) ServeDeparture();
  if (has_ended_) return;
  CheckLease();
  if (contact_.IsUnanswered(now_)) {
    LoseContact("no answer to our request to join within " +
                DurationText(Contact::kAttachPatience));
  }
  if (contact_.TakeRetry(now_)) Emit(Connect{});
  if (contact_.TakeProbe(now_)) Emit(ProbeEndpoint{});
  if (auto sequence = contact_.TakeHeartbeat(now_)) {
    Send(Heartbeat{.sequence = *sequence,
                   .step = group_ ? group_->lowest_step() : -1,
                   .can_save = group_ && group_->can_save()});
  }
  RenewByTime();
  LookForHangs();
}

void AgentRules::CheckPatience() {
  if (now_ < contact_.gives_up_at()) return;
  Unreachable facts{.endpoint = options_.endpoint,
                    .why = why_missing_,
                    .tried = contact_.patience(),
                    .was_reached_before = contact_.was_ever_attached()};
  CloseContact();
  EndWith({.verdict = VerdictOfUnreachable(facts)}, PlanStop(StopCause::kSuperseded, times_));
}

// The guardian's deadline, where no acknowledgement moves it.
void AgentRules::RenewByTime() {
  if (contact_.TakeRenewal(now_)) Emit(RenewDeadline{contact_.guardian_deadline()});
  if (now_ < next_renewal_) return;
  Emit(RenewDeadline{contact_.DeadlineIfHeld(now_)});
  next_renewal_ = now_ + contact_.renewal_interval();
}

void AgentRules::ShowLine(const std::string& words) {
  // Names and reasons in it are those of others.
  const std::string text = VisibleText(words);
  if (text == last_shown_) return;
  last_shown_ = text;
  Emit(Show{.text = text});
}

// ---- contact -------------------------------------------------------------------------------

void AgentRules::On(const RendezvousConnected& event) {
  if (contact_.state() != Contact::State::kConnecting) return;
  contact_.Opened(now_, event.to_own_address);
  Attach attach = options_.attach;
  attach.incarnation = incarnation_;
  attach.highest_round = highest_round_;
  attach.restarts_charged = restarts_charged_;
  attach.last_commit = last_commit_;
  if (!group_) attach.round_elsewhere = round_elsewhere_;
  attach.was_attached = contact_.was_ever_attached();
  attach.is_drained = is_drained_;
  attach.running.reset();
  if (group_) {
    attach.running = group_->ToRunningWorld(last_commit_);
  } else {
    owed_stop_done_.reset();  // an Attach without a running world says the same
  }
  Send(std::move(attach));
}

void AgentRules::On(const RendezvousDisconnected& event) {
  bool had_stream =
      contact_.state() != Contact::State::kPausing && contact_.state() != Contact::State::kClosed;
  if (!had_stream) return;
  if (event.is_hopeless && !contact_.was_ever_attached() && !ending_) {
    contact_.Closed(now_);
    Unreachable facts{.endpoint = options_.endpoint, .why = event.why};
    EndWith({.verdict = VerdictOfUnreachable(facts)}, PlanStop(StopCause::kSuperseded, times_));
    return;
  }
  bool was_attached = contact_.is_attached();
  why_missing_ = event.why;
  if (ending_) {
    contact_.Closed(now_);
    return;
  }
  contact_.Lost(now_);
  if (was_attached) {
    ShowLine("lost contact with the rendezvous at " + options_.endpoint + " (" + event.why +
             "); trying again for " + DurationText(contact_.patience()));
  } else if (!contact_.was_ever_attached()) {
    ShowLine("waiting for the rendezvous at " + options_.endpoint + " (" + event.why +
             "); trying again for " + DurationText(contact_.patience()) + " (join_timeout)");
  }
}

void AgentRules::On(const EndpointProbed& event) {
  if (contact_.Probed(event.is_refused)) Emit(RenewDeadline{contact_.guardian_deadline()});
}

void AgentRules::On(const RendezvousSaid& event) {
  // What is said on no stream, or before the answer to Attach, is stale.
  bool may_be_first = std::holds_alternative<Attached>(event.message) ||
                      std::holds_alternative<Refused>(event.message) ||
                      std::holds_alternative<Notice>(event.message) ||
                      std::holds_alternative<JobEnded>(event.message);
  bool is_awaited =
      contact_.is_attached() || (contact_.state() == Contact::State::kAttaching && may_be_first);
  if (!is_awaited) return;
  std::visit([this](const auto& message) { Said(message); }, event.message);
}

void AgentRules::Said(const Notice& message) {
  round_elsewhere_ = message.running_round;
  ShowLine(message.text);
}

void AgentRules::Said(const Attached& message) {
  if (contact_.state() != Contact::State::kAttaching) return;
  bool was_lost = contact_.was_ever_attached() && !why_missing_.empty();
  contact_.Attached(now_, message.lease, message.reconnect_timeout);
  why_missing_.clear();
  if (was_lost) ShowLine("reached the rendezvous at " + options_.endpoint + " again");
  Emit(RenewDeadline{contact_.guardian_deadline()});
  RepeatWhatIsOwed();
}

void AgentRules::RepeatWhatIsOwed() {
  if (owed_stop_done_) Send(*std::exchange(owed_stop_done_, std::nullopt));
  if (departure_) Send(LeaveRequest{.world = {}, .reason = departure_->why});
  if (!group_) return;
  if (!group_->is_told()) {
    for (WorkerFailure& failure : group_->Failures(now_)) {
      Send(WorkerFailed{.world = group_->world(), .failure = std::move(failure)});
    }
  }
  // Before the answer to Attach it was not sent; after a failure it means nothing.
  if (group_->has_succeeded()) {
    Send(NodeSucceeded{.world = group_->world()});
  } else if (group_->has_success() && group_->is_live()) {
    Send(WorkerSucceeded{.world = group_->world()});
  }
  for (AgentMessage& message : commits_.ToRepeat()) Send(std::move(message));
  if (group_->can_save()) contact_.HastenHeartbeat(now_);
  if (agreed_.announced) {
    Send(CheckpointStep{.world = group_->world(), .step = *agreed_.announced});
  }
}

void AgentRules::Said(const HeartbeatAck& message) {
  if (contact_.Acknowledged(message.sequence)) Emit(RenewDeadline{contact_.guardian_deadline()});
}

// Whether workers run that nobody is killing yet.
bool AgentRules::HasWorkersToLose() const {
  return group_ && !group_->has_succeeded() && !group_->is_being_killed();
}

// Whether workers run that must not outlive the lease, or a stream is open that may be dead.
bool AgentRules::LeaseMatters() const {
  if (ending_ && ending_->is_job_over) return false;
  return HasWorkersToLose() || contact_.is_attached();
}

Contact::Allowance AgentRules::Allowance() const {
  if (!HasWorkersToLose() || (ending_ && ending_->is_job_over)) return Contact::Allowance::kLease;
  switch (options_.lost_contact) {
    case LostContact::kAuto:
      break;
    case LostContact::kGoOn:
      return Contact::Allowance::kReconnectTimeout;
    case LostContact::kStop:
      return Contact::Allowance::kLease;
  }
  return group_->is_all_sdk() ? Contact::Allowance::kReconnectTimeout
                              : Contact::Allowance::kRefusals;
}

void AgentRules::CheckLease() {
  if (!LeaseMatters()) return;
  if (!contact_.DeadlineIsOver(now_)) {
    // Workers that may live without contact need no stream that is dead.
    if (contact_.IsSilent(now_))
      LoseContact("no answer to anything sent in the last " +
                  DurationText(contact_.usable_lease()));
    return;
  }
  bool has_workers = HasWorkersToLose();
  bool is_live = has_workers && group_->is_live();
  if (has_workers) {
    ShowLine("no answer from the rendezvous at " + options_.endpoint +
             " to anything sent in the last " + DurationText(contact_.usable_lease()) +
             ", and the lease of " + DurationText(contact_.lease()) +
             " is nearly over: this node may be replaced, so its workers are killed");
    EndRound(Rank(-1), "this node lost contact with the rendezvous");
    if (is_live) group_->Fence();
    Stop(PlanStop(StopCause::kSuperseded, times_));
  }
  if (is_live) {
    // Attach comes again when they are gone, as a node that runs nothing.
    if (why_missing_.empty()) why_missing_ = "no answer";
    CloseContact();
    waiting_start_.reset();
  } else if (contact_.is_attached()) {
    LoseContact("no answer to anything sent in the last " + DurationText(contact_.usable_lease()));
  }
}

void AgentRules::LoseContact(const std::string& why) {
  Emit(Disconnect{});
  On(RendezvousDisconnected{.why = why});
}

void AgentRules::CloseContact() {
  bool had_stream =
      contact_.state() != Contact::State::kPausing && contact_.state() != Contact::State::kClosed;
  if (had_stream) Emit(Disconnect{});
  contact_.Closed(now_);
}

void AgentRules::Said(const Refused& message) {
  if (message.code == RefusalCode::kSuperseded) {
    Supersede(message.message);
    return;
  }
  CloseContact();
  EndWith({.verdict = VerdictOfRefusal(message)}, PlanStop(StopCause::kSuperseded, times_));
}

void AgentRules::Supersede(const std::string& why) {
  ShowLine("this node was replaced in the job (" + why + "); it joins again as a new one");
  CloseContact();
  why_missing_ = why;
  incarnation_ = fresh_incarnation_;
  waiting_start_.reset();
  owed_stop_done_.reset();
  if (HasProcesses()) {
    EndRound(Rank(-1), "this node was replaced");
    group_->Fence();
    Stop(PlanStop(StopCause::kSuperseded, times_));
    return;
  }
  if (group_) EndRound(Rank(-1), "this node was replaced");
  group_.reset();
  if (!ending_) contact_.Reopen(now_);
}

}  // namespace muster::agent
