// Going in order: nodes that want to leave while their workers run, the checkpoint that all ranks
// agree on before, and what those nodes are told.
#include <algorithm>
#include <utility>

#include "rendezvous/core/job_rules.h"

namespace muster::rendezvous {
namespace {

// As if SIGTERM had ended it: nothing was saved for it.
constexpr int kExitTerminated = 143;

std::string LeftText(const Member& member) {
  return "node " + member.attach.node_name + " left: " + member.departure->reason;
}

}  // namespace

void JobMachine::Rules::Handle(Member& member, const LeaveRequest& message) {
  // Of whatever world: who wants to go wants it still.
  NoteDeparture(member, {.reason = message.reason});
}

void JobMachine::Rules::On(const NodeDrained& event) {
  Member* member = FindIncarnation(event.incarnation);
  if (member == nullptr || IsFinal() || member->departure) return;
  // Should this rendezvous be gone before it is, it tells the next one.
  SendTo(*member, Drained{});
  NoteDeparture(*member, Member::Departure::ByDrain());
}

void JobMachine::Rules::NoteDeparture(Member& member, Member::Departure departure) {
  if (IsFinal() || member.departure) return;
  Note("node " + member.attach.node_name + " is to leave: " + departure.reason);
  member.departure = std::move(departure);
  if (round_ && member.slot) {
    if (!departures_since_) departures_since_ = input_.now;
    return WeighDepartures();
  }
  LetGo(member, std::nullopt);
  if (!IsFinal()) Evaluate();
  if (!IsFinal()) AdmitClaimants();
}

bool JobMachine::Rules::CanSave() const {
  if (round_->agreement.state() >= Agreement::State::kNamed) return true;
  return std::all_of(round_->slots.begin(), round_->slots.end(), [](const Slot& slot) {
    return slot.state == SlotState::kRunning && slot.member != nullptr && slot.member->can_save;
  });
}

bool JobMachine::Rules::AreCollected() const {
  if (*departures_since_ + kDepartureWindow <= input_.now) return true;
  // Once those who stay are too few, it makes no difference who else leaves.
  int staying = 0;
  for (const auto& [id, member] : members_) {
    if (!member.departure && !member.set_aside_until) ++staying;
  }
  return staying < terms_->min_nodes;
}

void JobMachine::Rules::WeighDepartures() {
  if (state_ != JobState::kRunning || round_->stop || !departures_since_) return;
  bool is_anyone_left = false;
  std::vector<Member*> finished;
  for (const Slot& slot : round_->slots) {
    if (slot.member == nullptr || !slot.member->departure) continue;
    is_anyone_left = is_anyone_left || slot.state == SlotState::kRunning;
    if (slot.state == SlotState::kSucceeded) finished.push_back(slot.member);
  }
  for (Member* member : finished) {
    round_->Set(round_->slots[*member->slot], SlotState::kDone);
    LetGo(*member, std::nullopt);
  }
  if (!is_anyone_left) {
    departures_since_.reset();
    checkpoint_due_ = Instant::Never();
    // No stop comes for them any more, with which rank 0's agent would hear of its commit.
    const Member* first = round_->slots.front().member;
    if (round_->is_note_withheld && first != nullptr) TellOfCommit(first->id);
    return;
  }
  const bool is_saved = round_->agreement.state() == Agreement::State::kSaved;
  if (!is_saved && CanSave() && input_.now < checkpoint_due_) {
    // Also for a step that was named before: for those who have finished since, or to a rendezvous
    // before this one.
    if (checkpoint_due_.IsNever()) checkpoint_due_ = input_.now + options_.checkpoint_patience;
    if (round_->agreement.state() != Agreement::State::kNone) return;
    round_->agreement.Want();
    SendTo(*round_->slots.front().member, CheckpointWanted{round_->world});
    return;
  }
  if (AreCollected()) StopForDepartures();
}

Instant JobMachine::Rules::DepartureDue() const {
  if (state_ != JobState::kRunning || !departures_since_) return Instant::Never();
  Instant next = Instant::Never();
  for (Instant due : {*departures_since_ + kDepartureWindow, checkpoint_due_}) {
    if (due > input_.now) next = std::min(next, due);
  }
  return next;
}

void JobMachine::Rules::StopForDepartures() {
  std::string names;
  std::string reason;
  int count = 0;
  for (const Slot& slot : round_->slots) {
    if (slot.member == nullptr || !slot.member->departure) continue;
    names += (names.empty() ? "" : ", ") + slot.member->attach.node_name;
    reason = slot.member->departure->reason;
    ++count;
  }
  std::string text =
      (count == 1 ? "node " : "nodes ") + names + (count == 1 ? " leaves" : " leave");
  if (count == 1) text += ": " + reason;
  const bool is_saved = round_->agreement.state() == Agreement::State::kSaved;
  text += is_saved ? "; step " + std::to_string(last_commit_->step) + " is saved"
                   : "; nothing was saved for it";
  BeginStop(StopOrigin::kMembership, StopCause::kMembership, text, Rank(-1));
}

void JobMachine::Rules::LetDepartingGo(const Round& round) {
  departures_since_.reset();
  checkpoint_due_ = Instant::Never();
  std::optional<int64_t> saved_step;
  if (round.agreement.state() == Agreement::State::kSaved) saved_step = last_commit_->step;
  std::vector<Member*> departing;
  for (auto& [id, member] : members_) {
    if (MUSTER_PLANTED(kLeaverKept, false, member.departure.has_value())) {
      departing.push_back(&member);
    }
  }
  for (Member* member : departing) LetGo(*member, saved_step);
  if (!departing.empty()) AdmitClaimants();
}

void JobMachine::Rules::LetIdleGo() {
  // Before all could report, the place that one of them had in a running world isn't known.
  if (!has_idle_leavers_ || input_.now < quiet_until_ || IsFinal()) return;
  has_idle_leavers_ = false;
  std::vector<Member*> idle;
  for (auto& [id, member] : members_) {
    if (member.departure && !(round_ && member.slot)) idle.push_back(&member);
  }
  for (Member* member : idle) {
    const RoundId seen = member->attach.highest_round;
    const bool had_part =
        !has_formed_ && seen.value > 0 && (!round_ || seen == round_->world.round);
    if (had_part) AddReason(left_because_, LeftText(*member));
    LetGo(*member, std::nullopt);
  }
}

// While the job forms again. Not a spare or a newcomer, without which it was not below MIN before.
bool JobMachine::Rules::IsMissedIfItGoes(const Member& member) const {
  const bool had_part =
      member.last_group_rank.has_value() || member.attach.highest_round.value > 0;
  return !round_ && is_reforming_ && had_part;
}

void JobMachine::Rules::LetGo(Member& member, std::optional<int64_t> saved_step) {
  if (IsMissedIfItGoes(member)) AddReason(left_because_, LeftText(member));
  SendTo(member, JobEnded{Release(member, saved_step)});
  if (member.session) effects_.emplace_back(EndSession{*member.session});
  Note("node " + member.attach.node_name + " is let go: " + member.departure->reason);
  // Its place in a round that is being recovered stays empty.
  member.lost_recovered_round = false;
  const std::string name = member.attach.node_name;
  RemoveMember(member);
  // It doesn't come back.
  gone_.erase(name);
}

const Verdict& JobMachine::Rules::Release(const Member& member, std::optional<int64_t> saved_step) {
  const Member::Departure& departure = *member.departure;
  const std::string node = "node " + member.attach.node_name;
  Verdict verdict;
  verdict.exit_code = saved_step || departure.is_drained ? kExitRunAgain : kExitTerminated;
  verdict.reason = "job " + run_id_ + ": " + node + " was " + departure.reason + " and left " +
                   (saved_step ? "after the checkpoint of step " + std::to_string(*saved_step)
                               : "without a checkpoint of its own");
  const bool must_stay = member.attach.hosts_rendezvous && members_.size() > 1;
  verdict.reason += must_stay ? "; it hosts the rendezvous, so its muster process stays until the "
                                "job ends: don't switch it off before"
                              : "; run it again to go on";
  verdict.restarts_charged = ledger_.charged();
  return released_.Keep(member.attach, std::move(verdict));
}

// ---- the agreement -------------------------------------------------------------------------

void JobMachine::Rules::Handle(Member& member, const CheckpointStep& message) {
  if (!IsCurrent(message.world) || !member.slot || round_->stop || IsFinal()) return;
  if (*member.slot != 0) return;
  Agreement& agreement = round_->agreement;
  if (!agreement.Name(message.step, round_->slots.size())) {
    // Named before; it may have missed what came of it.
    return ResendAgreement(member, *member.slot);
  }
  Note("all ranks of " + RoundName() + " save after step " + std::to_string(message.step));
  for (size_t i = 0; i < round_->slots.size(); ++i) {
    const Slot& slot = round_->slots[i];
    const bool has_finished = slot.state == SlotState::kSucceeded || slot.state == SlotState::kDone;
    if (has_finished) {
      KnowStep(i);
    } else if (slot.member != nullptr) {
      SendTo(*slot.member, CheckpointAt{round_->world, message.step});
    }
  }
  if (MUSTER_PLANTED(kStepNotAwaited, true, false)) {
    SendTo(member, CheckpointAgreed{round_->world, message.step});
  }
}

void JobMachine::Rules::Handle(Member& member, const CheckpointStepKnown& message) {
  if (!IsCurrent(message.world) || !member.slot || round_->stop || IsFinal()) return;
  if (message.step == round_->agreement.step()) KnowStep(*member.slot);
}

void JobMachine::Rules::KnowStep(size_t index) {
  Agreement& agreement = round_->agreement;
  if (!agreement.Know(index, agreement.step())) return;
  const Member* first = round_->slots.front().member;
  if (first != nullptr) SendTo(*first, CheckpointAgreed{round_->world, agreement.step()});
}

void JobMachine::Rules::ResendAgreement(const Member& member, size_t index) {
  const Agreement& agreement = round_->agreement;
  switch (agreement.state()) {
    case Agreement::State::kNone:
    case Agreement::State::kSaved:
      return;
    case Agreement::State::kWanted:
      if (index == 0) SendTo(member, CheckpointWanted{round_->world});
      return;
    case Agreement::State::kNamed:
      SendTo(member, CheckpointAt{round_->world, agreement.step()});
      return;
    case Agreement::State::kKnown:
      if (index == 0) SendTo(member, CheckpointAgreed{round_->world, agreement.step()});
      return;
  }
}

}  // namespace muster::rendezvous
