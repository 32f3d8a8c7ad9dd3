#include "rendezvous/core/job_machine.h"

#include <algorithm>
#include <utility>

#include "rendezvous/core/job_rules.h"

namespace muster::rendezvous {
namespace {

// Of an agent that tries to reach us again, at most (base/backoff.h).
constexpr Duration kPauseBetweenTries = std::chrono::milliseconds(250);

}  // namespace

const char* JobStateName(JobState state) {
  switch (state) {
    case JobState::kGathering:
      return "gathering";
    case JobState::kClosing:
      return "closing";
    case JobState::kRunning:
      return "running";
    case JobState::kStopping:
      return "stopping";
    case JobState::kRecovering:
      return "recovering";
    case JobState::kSucceeded:
      return "succeeded";
    case JobState::kFailed:
      return "failed";
  }
  return "unknown";
}

JobMachine::JobMachine(std::string run_id, JobOptions options, Instant started)
    : rules_(std::make_unique<Rules>(std::move(run_id), options, started)) {}

JobMachine::~JobMachine() = default;

std::vector<JobEffect> JobMachine::Step(const StepInput& input, const JobEvent& event) {
  return rules_->Step(input, event);
}

Instant JobMachine::NextWakeup() const { return rules_->NextWakeup(); }
JobState JobMachine::state() const { return rules_->state(); }
bool JobMachine::IsDone() const { return rules_->IsDone(); }
std::optional<JobRecord> JobMachine::OpenedAnewBy(const Attach& attach) const {
  return rules_->OpenedAnewBy(attach);
}
bool JobMachine::IsBlank() const { return rules_->IsBlank(); }
JobStatus JobMachine::Status(Instant now) const { return rules_->Status(now); }
bool JobMachine::HasMember(const Incarnation& agent) const { return rules_->HasMember(agent); }

JobMachine::Rules::Rules(std::string run_id, JobOptions options, Instant started)
    : run_id_(std::move(run_id)),
      options_(options),
      quiet_until_(started + options.startup_quiet),
      unheard_are_lost_at_(started + std::max(options.startup_quiet, options.lease)),
      leases_(options.lease),
      graces_(options.reattach_grace),
      highest_round_(options.record.world.round),
      // Nobody runs the round of a job that had ended before it was opened anew.
      round_elsewhere_(options.record_is_new ? RoundId() : options.record.world.round),
      losses_({.good_uptime = options.good_uptime, .set_aside_for = options.set_aside_for}),
      verdict_(options.record.verdict) {
  if (verdict_) state_ = verdict_->succeeded ? JobState::kSucceeded : JobState::kFailed;
}

std::vector<JobEffect> JobMachine::Rules::Step(const StepInput& input, const JobEvent& event) {
  input_ = input;
  effects_.clear();
  if (std::exchange(options_.record_is_new, false)) Keep(/*before_the_rest=*/true);
  if (!wakeup_.IsNever() && input.now - wakeup_ > options_.lease / 3) {
    // This process stood still (SIGSTOP, a paused machine, overload), so what looks like the
    // agents' silence is our own deafness.
    leases_.RestartAll(input.now);
    // Those who gave up on us meanwhile are between two tries.
    graces_.RestartAll(input.now + kPauseBetweenTries);
  }
  std::visit([this](const auto& e) { On(e); }, event);
  const Instant was_due_at = wakeup_;
  wakeup_ = ComputeWakeup();
  // What is due stays so until TimePassed has served it: other events may come first, and again and
  // again.
  if (!std::holds_alternative<TimePassed>(event) && was_due_at <= input.now) {
    wakeup_ = MUSTER_PLANTED(kDueTimerPutOff, wakeup_, was_due_at);
  }
  return std::exchange(effects_, {});
}

void JobMachine::Rules::On(const SessionMessage& event) {
  if (const auto* attach = std::get_if<Attach>(&event.message)) {
    OnAttach(event.session, *attach);
    return;
  }
  auto known = sessions_.find(event.session);
  // A session that was refused or replaced may still deliver what was under way.
  if (known == sessions_.end()) return;
  Member& member = *known->second;
  member.last_message = input_.now;
  leases_.Renew(member.id, input_.now);
  if (!claimants_.empty()) RefuseClaimants(member);
  std::visit([&](const auto& message) { Handle(member, message); }, event.message);
}

void JobMachine::Rules::On(const SessionEnded& event) {
  claimants_.erase(event.session);
  auto known = sessions_.find(event.session);
  if (known == sessions_.end()) return;
  Member& member = *known->second;
  Unbind(member);
  if (IsFinal()) {
    RemoveMember(member);
    return;
  }
  graces_.Renew(member.id, input_.now);
  // Somebody asks for its place and its stream is gone: no need to wait for the grace.
  for (const auto& [session, claim] : claimants_) {
    if (HolderOf(claim) != &member) continue;
    Lose({&member}, "its stream ended and another node came for its --node-rank");
    break;
  }
  Evaluate();
}

void JobMachine::Rules::On(const TimePassed& /*event*/) {
  Expire();
  if (IsFinal()) return;
  if (recover_deadline_ <= input_.now) GiveUpMissing();
  if (IsFinal()) return;
  if (set_aside_ends_ <= input_.now) EndSetAsides();
  // What waited for the end of the quiet time.
  WeighRecovery();
  MaybeFinishStop();
  MaybeSucceed();
  if (IsFinal()) return;
  Evaluate();
  const bool is_gathering = state_ == JobState::kGathering || state_ == JobState::kClosing;
  if (is_gathering && below_min_since_ && *below_min_since_ + terms_->join_timeout <= input_.now) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(terms_->join_timeout).count();
    FailBelowMin(kExitTimedOut,
                 "fewer nodes than needed for " + std::to_string(seconds) + " s (join_timeout)");
    return;
  }
  if (notice_due_ <= input_.now) TellWaiting();
}

void JobMachine::Rules::On(const HostRefused& event) {
  if (state_ == JobState::kGathering) On(HostStopping{event.reason, event.exit_code});
}

void JobMachine::Rules::On(const HostStopping& event) {
  if (IsFinal()) return;
  if (round_ && !round_->stop) {
    for (const Slot& slot : round_->slots) {
      if (slot.member == nullptr) continue;
      SendTo(*slot.member, StopRound{round_->world, StopCause::kJobEnding, event.reason, Rank(-1)});
    }
  }
  Verdict verdict;
  verdict.reason = event.reason;
  verdict.exit_code = event.exit_code;
  EndJob(JobState::kFailed, std::move(verdict));
}

void JobMachine::Rules::Expire() {
  std::vector<Member*> silent;
  std::vector<Member*> gone;
  for (MemberId id : leases_.TakeExpired(input_.now)) silent.push_back(&members_.at(id));
  for (MemberId id : graces_.TakeExpired(input_.now)) gone.push_back(&members_.at(id));
  if (IsFinal()) {
    silent.insert(silent.end(), gone.begin(), gone.end());
    for (Member* member : silent) {
      if (member->session) effects_.emplace_back(EndSession{*member->session});
      RemoveMember(*member);
    }
    return;
  }
  const auto in_ms = [](Duration duration) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  };
  if (!gone.empty() || !silent.empty()) {
    std::vector<Member*> lost = gone;
    lost.insert(lost.end(), silent.begin(), silent.end());
    Lose(lost, !gone.empty() ? "its stream ended and it did not come back within " +
                                   in_ms(options_.reattach_grace) + " ms"
                             : "it was silent for " + in_ms(options_.lease) + " ms");
  }
}

void JobMachine::Rules::Handle(Member& /*member*/, const Attach& /*attach*/) {
  // On(SessionMessage) has taken these: an Attach may come from nobody's session.
}

void JobMachine::Rules::Handle(Member& member, const Heartbeat& heartbeat) {
  SendTo(member, HeartbeatAck{heartbeat.sequence});
  if (member.can_save == heartbeat.can_save) return;
  member.can_save = heartbeat.can_save;
  WeighDepartures();
}

Instant JobMachine::Rules::ComputeWakeup() const {
  Instant next = std::min(leases_.NextExpiry(), graces_.NextExpiry());
  // Often enough to notice that this process stood still.
  if (!sessions_.empty()) next = std::min(next, input_.now + options_.lease / 3);
  if (IsFinal()) return next;
  next = std::min({next, recover_deadline_, notice_due_, set_aside_ends_, DepartureDue()});
  const bool waits_for_reports = has_idle_leavers_ || round_;
  if (waits_for_reports && input_.now < quiet_until_) next = std::min(next, quiet_until_);
  if (state_ == JobState::kGathering || state_ == JobState::kClosing) {
    next = std::min(next, ask_again_);
    if (below_min_since_) next = std::min(next, *below_min_since_ + terms_->join_timeout);
  }
  return next;
}

JobStatus JobMachine::Rules::Status(Instant now) const {
  JobStatus status;
  status.run_id = run_id_;
  status.state = state_;
  // After the last round its number still tells how far the job came.
  status.world = round_ ? round_->world : World{highest_round_, WorldId{}};
  if (highest_round_.value > 0) status.attempt = static_cast<int>(highest_round_.value) - 1;
  status.restarts_charged = ledger_.charged();
  status.max_restarts = terms_ ? terms_->max_restarts : 0;
  status.last_commit = last_commit_.get();
  status.verdict = verdict_;
  if (released_.host() && !IsFinal()) {
    NodeStatus& host = status.departed_host.emplace();
    host.node_name = released_.host()->node_name;
    host.address = released_.host()->address;
    host.hosts_rendezvous = true;
  }
  status.nodes.reserve(members_.size());
  for (const auto& [id, member] : members_) {
    NodeStatus& node = status.nodes.emplace_back();
    node.node_name = member.attach.node_name;
    node.address = member.attach.address;
    node.incarnation = member.attach.incarnation;
    if (round_ && member.slot) node.group_rank = round_->slots[*member.slot].group_rank;
    node.attached = member.session.has_value();
    if (member.set_aside_until) {
      node.is_set_aside = true;
      node.set_aside_left = std::max<Duration>(*member.set_aside_until - now, Duration(0));
    }
    node.hosts_rendezvous = member.attach.hosts_rendezvous;
    if (member.departure) node.leaves_because = member.departure->reason;
    node.since_last_message = now - member.last_message;
  }
  return status;
}

void JobMachine::Rules::SendTo(const Member& member, RendezvousMessage message) {
  // Whoever is detached learns what it missed when it re-attaches.
  if (member.session) SendOn(*member.session, std::move(message));
}

void JobMachine::Rules::SendOn(SessionId session, RendezvousMessage message) {
  effects_.emplace_back(SendMessage{session, std::move(message)});
}

void JobMachine::Rules::Note(const std::string& text) {
  effects_.emplace_back(Record{"job " + run_id_ + ": " + text});
}

void JobMachine::Rules::Keep(bool before_the_rest) {
  const World world = round_ ? round_->world : World{highest_round_, WorldId{}};
  const auto commit = MUSTER_PLANTED(kCommitNotKept, std::nullopt, last_commit_.get());
  effects_.emplace_back(
      KeepRecord{{world, commit, last_commit_.round(), verdict_}, before_the_rest});
}

std::string JobMachine::Rules::RoundName() const {
  return "round " + std::to_string(round_ ? round_->world.round.value : highest_round_.value);
}

}  // namespace muster::rendezvous
