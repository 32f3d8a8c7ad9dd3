// Gathering nodes, forming a round of them, and what the loss or the leaving of one means.
#include <algorithm>
#include <utility>

#include "rendezvous/core/job_rules.h"
#include "rendezvous/core/rank_assignment.h"

namespace muster::rendezvous {
namespace {

// How often a node that waits for the next commit is told that none has come.
constexpr Duration kGrowthNoticeInterval = std::chrono::minutes(10);

std::string LossText(const std::string& node_name, const std::string& why) {
  return "node " + node_name + " is lost: " + why;
}

}  // namespace

void JobMachine::Rules::Evaluate() {
  if (is_replacing_) return;
  LetIdleGo();
  switch (state_) {
    case JobState::kGathering:
    case JobState::kClosing:
      EvaluateGathering();
      break;
    case JobState::kRunning:
      WeighDepartures();
      if (state_ == JobState::kRunning && WantsScaleUp() && MayScaleUp()) {
        BeginStop(StopOrigin::kMembership, StopCause::kMembership,
                  "the world grows: " + std::to_string(ReadyNodes()) + " of at most " +
                      Counted(terms_->max_nodes, "node") + " are here",
                  Rank(-1));
      }
      break;
    case JobState::kStopping:
    case JobState::kRecovering:
    case JobState::kSucceeded:
    case JobState::kFailed:
      break;
  }
}

void JobMachine::Rules::EvaluateGathering() {
  ForgetEmptyJob();
  if (!terms_) return;
  if (!failed_starts_.empty()) {
    for (const auto& [id, member] : members_) {
      failed_starts_.Came(member.attach.node_name, member.attached_at);
    }
  }
  TakeLastResort();
  const int ready = ReadyNodes();
  const bool is_enough = ready >= terms_->min_nodes;
  if (is_enough) {
    below_min_since_.reset();
    if (!min_first_reached_) min_first_reached_ = input_.now;
  } else {
    if (!below_min_since_) below_min_since_ = input_.now;
    if (!left_because_.empty() && ready + ReturningNodes() < terms_->min_nodes) {
      return FailBelowMin(kExitRunAgain, left_because_);
    }
  }
  const JobState state = is_enough ? JobState::kClosing : JobState::kGathering;
  const RoundAnswer answer = MayCloseRound(Question());
  ask_again_ = answer.ask_again;
  if (answer.may_close) return FormRound();
  if (answer.reason != waiting_reason_ || state != state_) {
    waiting_reason_ = answer.reason;
    notice_due_ = std::min(notice_due_, input_.now + NoticeInterval(sessions_.size()));
  }
  if (state == state_) return;
  state_ = state;
  Note(std::string(JobStateName(state)) + ": " + answer.reason);
}

RoundQuestion JobMachine::Rules::Question() const {
  RoundQuestion question;
  question.now = input_.now;
  question.min_nodes = terms_->min_nodes;
  question.max_nodes = terms_->max_nodes;
  question.ready_nodes = ReadyNodes();
  question.returning_nodes = ReturningNodes();
  question.is_reforming = is_reforming_;
  question.min_first_reached = min_first_reached_;
  question.last_call_timeout = terms_->last_call_timeout;
  question.quiet_until = quiet_until_;
  // Nobody has come who was in it: they run it, as far as is known.
  if (!has_formed_ && round_elsewhere_ > opener_.past.round)
    question.elsewhere_until = unheard_are_lost_at_;
  question.form_not_before = form_not_before_;
  return question;
}

int JobMachine::Rules::ReadyNodes() const {
  return static_cast<int>(sessions_.size()) - set_aside_attached_;
}

bool JobMachine::Rules::WantsScaleUp() const {
  const auto in_round = static_cast<int>(round_->slots.size());
  if (in_round >= terms_->max_nodes || members_.size() <= round_->occupied) return false;
  // Once a worker has finished, those who are late have missed the job: what it did would be lost.
  if (MUSTER_PLANTED(kGrowsAfterSuccess, false, round_->has_success)) return false;
  // Whoever is ready and has no slot waits for a place.
  int waiting = ReadyNodes();
  for (const Slot& slot : round_->slots) {
    if (slot.member != nullptr && slot.member->session) --waiting;
  }
  return waiting > 0;
}

bool JobMachine::Rules::MayScaleUp() const {
  // Before all could report it isn't known who is new.
  if (input_.now < quiet_until_) return false;
  // A stop for those who leave takes in those who come.
  if (departures_since_) return false;
  const bool makes_commits = last_commit_.has_value() && last_commit_.round() >= previous_round_;
  const bool is_bound_to_commits = terms_->scale_up == ScaleUp::kCheckpoint ||
                                   (terms_->scale_up == ScaleUp::kAuto && makes_commits);
  return is_at_commit_ || !is_bound_to_commits;
}

void JobMachine::Rules::FormRound() {
  std::vector<Candidate> candidates;
  for (auto& [id, member] : members_) {
    const bool is_set_aside =
        MUSTER_PLANTED(kSetAsideIgnored, false, member.set_aside_until.has_value());
    if (!member.session || is_set_aside) continue;
    candidates.push_back({.member = id,
                          .worker_count = member.attach.worker_count,
                          .wanted_place = member.attach.node_rank,
                          .last_place = member.last_group_rank,
                          .topology = member.attach.facts.topology});
  }
  const Assignment assignment = AssignRanks(std::move(candidates), terms_->max_nodes);
  previous_round_ = highest_round_;
  highest_round_.value += MUSTER_PLANTED(kRoundNumberReused, highest_round_.value == 0 ? 1 : 0, 1);
  round_.emplace();
  round_->world = {highest_round_, input_.fresh_world_id};
  round_->key = input_.fresh_round_key;
  round_->world_size = assignment.world_size;
  round_->restarts_charged = ledger_.charged();
  round_->resume = last_commit_.get();
  last_commit_.RoundIsFormed(highest_round_);
  options_.record.commit.reset();
  round_->began = input_.now;
  round_->Resize(assignment.places.size());
  for (size_t i = 0; i < assignment.places.size(); ++i) {
    const Place& place = assignment.places[i];
    Member& member = members_.at(place.member);
    Slot& slot = round_->slots[i];
    slot.member = &member;
    ++round_->occupied;
    slot.group_rank = place.group_rank;
    slot.first_rank = place.first_rank;
    slot.worker_count = member.attach.worker_count;
    round_->Set(slot, SlotState::kRunning);
    member.slot = i;
    member.last_group_rank = place.group_rank;
    member.can_save = false;
    member.told.clear();
  }
  round_->master_address = round_->slots.front().member->attach.address;
  round_->master_port = round_->slots.front().member->attach.candidate_port;
  state_ = JobState::kRunning;
  has_formed_ = true;
  is_reforming_ = true;
  below_min_since_.reset();
  min_first_reached_.reset();
  left_because_.clear();
  failed_starts_.Clear();
  form_not_before_ = Instant();
  ask_again_ = Instant::Never();
  // Spares are told below; nobody waits for this round any more.
  notice_due_ = Instant::Never();
  const auto nodes = static_cast<int>(round_->slots.size());
  effects_.emplace_back(RoundStarted{round_->world, nodes, round_->world_size});
  Keep(/*before_the_rest=*/false);
  Note(RoundName() + " begins: " + Counted(nodes, "node") + ", " +
       Counted(round_->world_size, "worker") + ", " +
       Counted(static_cast<int>(assignment.spares.size()), "spare"));
  for (const Slot& slot : round_->slots) SendTo(*slot.member, PlaceOf(slot));
  for (MemberId id : assignment.spares) TellNewcomer(members_.at(id));
}

StartRound JobMachine::Rules::PlaceOf(const Slot& slot) const {
  StartRound start;
  start.world = round_->world;
  start.key = round_->key;
  start.group_rank = slot.group_rank;
  start.group_world_size = static_cast<int>(round_->slots.size());
  start.first_rank = slot.first_rank;
  start.world_size = round_->world_size;
  start.master_address = round_->master_address;
  start.master_port = round_->master_port;
  start.attempt = static_cast<int>(round_->world.round.value) - 1;
  start.restarts_charged = round_->restarts_charged;
  start.resume = round_->resume;
  return start;
}

void JobMachine::Rules::SetAside(Member& member, Instant until) {
  if (!member.set_aside_until && member.session) ++set_aside_attached_;
  member.set_aside_until = until;
  set_aside_ends_ = std::min(set_aside_ends_, until);
}

void JobMachine::Rules::EndSetAside(Member& member) {
  if (!member.set_aside_until) return;
  member.set_aside_until.reset();
  if (member.session) --set_aside_attached_;
}

void JobMachine::Rules::EndSetAsides() {
  set_aside_ends_ = Instant::Never();
  for (auto& [id, member] : members_) {
    if (!member.set_aside_until) continue;
    if (input_.now < *member.set_aside_until) {
      set_aside_ends_ = std::min(set_aside_ends_, *member.set_aside_until);
      continue;
    }
    EndSetAside(member);
    if (member.session) TellNewcomer(member);
    Note("node " + member.attach.node_name + " was set aside for long enough and may take part");
  }
}

void JobMachine::Rules::TakeLastResort() {
  int missing = terms_->min_nodes - ReadyNodes();
  // Whoever may still come back is waited for first.
  if (missing <= 0 || missing > set_aside_attached_ || ReturningNodes() > 0) return;
  std::vector<Member*> aside;
  for (auto& [id, member] : members_) {
    if (member.session && member.set_aside_until) aside.push_back(&member);
  }
  std::stable_sort(aside.begin(), aside.end(), [this](const Member* a, const Member* b) {
    return losses_.CountOf(a->attach.node_name) < losses_.CountOf(b->attach.node_name);
  });
  aside.resize(static_cast<size_t>(missing));
  for (Member* member : aside) {
    EndSetAside(*member);
    const std::string text = "node " + member->attach.node_name + " was lost " +
                             Counted(losses_.CountOf(member->attach.node_name), "time") +
                             " without progress (--max-node-failures), but the job can't "
                             "reach its least number of nodes without it, so it takes part";
    Note(text);
    SendTo(*member, Notice{text, round_ ? round_->world.round : RoundId()});
  }
}

void JobMachine::Rules::Lose(const std::vector<Member*>& members, const std::string& why) {
  std::string names;
  Rank culprit(-1);
  for (Member* member : members) {
    const std::string& name = member->attach.node_name;
    Note(LossText(name, why));
    const Rank first_rank =
        round_ && member->slot ? round_->slots[*member->slot].first_rank : Rank(-1);
    if (LoseSlot(*member)) {
      if (culprit.value < 0) culprit = first_rank;
      names += (names.empty() ? "" : ", ") + name;
    }
    if (member->session) effects_.emplace_back(EndSession{*member->session});
    // Lost on its way out: should it come back, it goes.
    if (member->departure) Release(*member, std::nullopt);
    RemoveMember(*member);
  }
  if (!names.empty() && !round_->stop) {
    BeginStop(StopOrigin::kLoss, StopCause::kPeerLost, "lost node " + names + ": " + why, culprit);
  } else if (state_ == JobState::kStopping) {
    MaybeFinishStop();
  }
  if (!IsFinal()) Evaluate();
  if (!IsFinal()) AdmitClaimants();
}

bool JobMachine::Rules::LoseSlot(Member& member) {
  if (!round_ || !member.slot) return false;
  Slot& slot = round_->slots[*member.slot];
  switch (slot.state) {
    case SlotState::kSucceeded:
      round_->Set(slot, SlotState::kDone);
      return false;
    case SlotState::kRunning:
      break;
    case SlotState::kMissing:
    case SlotState::kDone:
    case SlotState::kStopped:
    case SlotState::kLost:
      return false;
  }
  if (state_ == JobState::kRecovering) {
    // It may come back as the others may: nothing is decided before the deadline.
    round_->Set(slot, SlotState::kMissing);
    return false;
  }
  round_->Set(slot, SlotState::kLost);
  round_->had_loss = true;
  const bool is_set_aside = losses_.Add(
      member.attach.node_name,
      {.at = input_.now, .uptime = input_.now - round_->began, .limit = terms_->max_node_failures});
  if (is_set_aside) {
    Note("node " + member.attach.node_name + " is set aside: it was lost " +
         Counted(losses_.CountOf(member.attach.node_name), "time") +
         " without progress (--max-node-failures)");
    // Its replacement may be here already.
    const Instant until = *losses_.SetAsideUntil(member.attach.node_name, input_.now);
    for (auto& [id, other] : members_) {
      const bool is_same_node = other.attach.node_name == member.attach.node_name;
      if (is_same_node && &other != &member && !other.slot) SetAside(other, until);
      if (is_same_node && other.session) TellNewcomer(other);
    }
  }
  return true;
}

void JobMachine::Rules::Depart(Member& member, const std::string& reason) {
  const std::string text = "node " + member.attach.node_name + " leaves: " + reason;
  Note(text);
  if (IsMissedIfItGoes(member)) AddReason(left_because_, text);
  bool must_stop = false;
  if (round_ && member.slot) {
    Slot& slot = round_->slots[*member.slot];
    if (slot.state == SlotState::kSucceeded) {
      round_->Set(slot, SlotState::kDone);
      KnowStep(*member.slot);
    } else if (slot.state == SlotState::kRunning) {
      round_->Set(slot, SlotState::kStopped);
      // Its workers were stopped before the others knew: their failures may be of its making.
      round_->had_loss = true;
      AddReason(left_because_, text);
      must_stop = true;
      if (form_not_before_ <= input_.now) form_not_before_ = input_.now + kDepartureWindow;
    }
  }
  if (member.session) effects_.emplace_back(EndSession{*member.session});
  RemoveMember(member);
  if (must_stop && !round_->stop) {
    BeginStop(StopOrigin::kMembership, StopCause::kMembership, text, Rank(-1));
  } else if (state_ == JobState::kStopping) {
    MaybeFinishStop();
  }
  if (!IsFinal()) Evaluate();
  if (!IsFinal()) AdmitClaimants();
}

void JobMachine::Rules::Handle(Member& member, const Leave& message) {
  if (IsFinal()) {
    effects_.emplace_back(EndSession{*member.session});
    return RemoveMember(member);
  }
  released_.NoteHost(member.attach);
  if (!message.is_lost) return Depart(member, message.reason);
  // While recovering a loss may still be made good, but this one has said that it can't.
  if (state_ == JobState::kRecovering && member.slot) {
    BeginStop(StopOrigin::kLoss, StopCause::kPeerLost,
              LossText(member.attach.node_name, message.reason),
              round_->slots[*member.slot].first_rank);
  }
  Lose({&member}, message.reason);
}

void JobMachine::Rules::ForgetEmptyJob() {
  // Nobody is here and no round ever was: the next to come opens the job afresh.
  if (!members_.empty() || is_reforming_ || has_formed_ || !left_because_.empty()) return;
  terms_.reset();
  below_min_since_.reset();
  min_first_reached_.reset();
  waiting_reason_.clear();
  failed_starts_.Clear();
  ask_again_ = Instant::Never();
  notice_due_ = Instant::Never();
  state_ = JobState::kGathering;
}

void JobMachine::Rules::On(const NodeCannotStart& event) {
  if (IsFinal()) return;
  Note("node " + event.node_name + " could not start: " + event.reason);
  // Nobody waits for it in a round that runs.
  if (state_ == JobState::kRunning) return;
  failed_starts_.Add(input_.now, event.node_name, event.reason);
  notice_due_ = std::min(notice_due_, input_.now + NoticeInterval(sessions_.size()));
}

void JobMachine::Rules::TellNewcomer(Member& member) {
  if (round_ && member.slot) return;
  if (MUSTER_PLANTED(kSpareForgotten, state_ == JobState::kRunning, false)) {
    SetAside(member, input_.now + std::chrono::hours(1));
  }
  if (state_ == JobState::kRunning && notice_due_.IsNever() && WantsScaleUp()) {
    notice_due_ = input_.now + kGrowthNoticeInterval;
  }
  const std::string text = WaitingText(member);
  if (text.empty() || IsFinal()) return;
  const RoundId runs = round_ ? round_->world.round : RoundId();
  if (text == member.told && runs == member.told_round) return;
  member.told = text;
  member.told_round = runs;
  SendTo(member, Notice{text, runs});
}

std::string JobMachine::Rules::WaitingForText() const {
  if (!WantsScaleUp()) return "waits as a spare";
  std::string text = "joins at the next checkpoint (--scale-up)";
  const Duration since = input_.now - std::max(round_->began, last_commit_at_);
  if (since < kGrowthNoticeInterval) return text;
  const auto tens = since / kGrowthNoticeInterval;
  return text + ", but none has come for " + std::to_string(10 * tens) +
         " minutes; --scale-up=immediate wouldn't wait for one";
}

void JobMachine::Rules::TellWaiting() {
  notice_due_ = Instant::Never();
  if (state_ == JobState::kRunning && WantsScaleUp()) {
    notice_due_ = input_.now + kGrowthNoticeInterval;
  }
  for (auto& [id, member] : members_) {
    if (member.session) TellNewcomer(member);
  }
}

std::string JobMachine::Rules::WaitingText(const Member& member) const {
  if (member.set_aside_until) {
    return "this node was lost too often (--max-node-failures) and is set aside until the next "
           "checkpoint, for at most " +
           std::to_string(std::chrono::ceil<std::chrono::minutes>(options_.set_aside_for).count()) +
           " minutes, or until the job can't go on without it";
  }
  switch (state_) {
    case JobState::kGathering:
    case JobState::kClosing:
      return failed_starts_.empty() ? waiting_reason_
                                    : waiting_reason_ + "; " + failed_starts_.Text();
    case JobState::kRunning:
      if (round_->has_success) {
        return "the first workers of " + RoundName() +
               " have finished, so nobody is taken in any more; this node waits for the result";
      }
      return "the job runs with " + std::to_string(round_->slots.size()) + " of at most " +
             Counted(terms_->max_nodes, "node") + "; this one " + WaitingForText();
    case JobState::kRecovering:
      return "the rendezvous was restarted; waiting for the " +
             Counted(static_cast<int>(round_->slots.size()), "node") + " of " + RoundName() +
             " to come back";
    case JobState::kStopping:
    case JobState::kSucceeded:
    case JobState::kFailed:
      break;
  }
  return "";
}

}  // namespace muster::rendezvous
