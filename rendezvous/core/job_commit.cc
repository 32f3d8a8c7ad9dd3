// Checkpoints: only the current round's are granted, and the newest is what the next round resumes.
#include <utility>

#include "rendezvous/core/job_rules.h"

namespace muster::rendezvous {

void JobMachine::Rules::Handle(Member& member, const ShardReport& message) {
  const auto refuse = [&](const std::string& reason) {
    SendTo(member, CommitRefused{message.world, message.commit, reason});
  };
  const bool is_stale = !IsCurrent(message.world) || !member.slot || round_->stop.has_value();
  if (MUSTER_PLANTED(kStaleCommitGranted, !round_, is_stale)) {
    return refuse("round " + std::to_string(message.world.round.value) +
                  " is over; its checkpoints can't be committed");
  }
  const CommitTable::Outcome outcome = round_->commits.Report(message, round_->world_size);
  switch (outcome.answer) {
    case CommitTable::Answer::kRefuse:
      return refuse(outcome.reason);
    case CommitTable::Answer::kCommitted:
      // Rank 0's agent hears of it with the stop.
      if (round_->is_note_withheld) return;
      // The newest, not the reported one: agents remember what they hear last.
      SendTo(member, CommitNoted{message.world, last_commit_.get().value_or(message.commit)});
      return;
    case CommitTable::Answer::kWait:
      return;
    case CommitTable::Answer::kGrant:
      break;
  }
  // While recovering a newer world may still turn up; the grant goes out when this one is complete.
  if (state_ == JobState::kRecovering) return;
  const Member* first = round_->slots.front().member;
  if (first != nullptr) SendTo(*first, CommitGranted{message.world, message.commit});
}

void JobMachine::Rules::Handle(Member& member, const CommitDone& message) {
  // Also while the round stops: the grant came before the stop, and the checkpoint is there.
  if (!IsCurrent(message.world) || !member.slot || IsFinal()) {
    SendTo(member, CommitRefused{message.world, message.commit,
                                 "round " + std::to_string(message.world.round.value) +
                                     " is over; its checkpoints can't be committed"});
    return;
  }
  const bool is_published = round_->commits.Publish(message.commit);
  const bool is_new = is_published && last_commit_.Add(message.commit, round_->world.round);
  if (!is_new && round_->is_recovered && round_->world.round < last_commit_.round()) {
    // A world that outlived a rendezvous, while a later one committed that doesn't run any more.
    SendTo(member,
           CommitRefused{message.world, message.commit,
                         "a node was in round " + std::to_string(last_commit_.round().value) +
                             ", which knew of step " + std::to_string(last_commit_->step) +
                             "; what the older " + RoundName() + " saves can't be committed"});
    return;
  }
  if (!is_new) {
    // Its answer comes with the stop; one to an older commit would let it go on, too.
    if (round_->is_note_withheld) return;
    if (is_published && !round_->is_recovered) {
      // Another world got further; who leaves with this checkpoint does so all the same.
      round_->agreement.Save(message.commit.step);
      return TellOfCommit(member.id);
    }
    if (last_commit_.has_value()) SendTo(member, CommitNoted{round_->world, *last_commit_});
    return;
  }
  last_commit_at_ = input_.now;
  // Nobody may build on it who could be the only one to know of it.
  Keep(/*before_the_rest=*/true);
  round_->agreement.Save(message.commit.step);
  ledger_.Committed(message.commit.step);
  losses_.Committed();
  set_aside_ends_ = Instant::Never();
  Note(RoundName() + " committed step " + std::to_string(message.commit.step) + " in " +
       message.commit.directory);
  for (auto& [id, other] : members_) {
    if (&other != &member) SendTo(other, CommitNoted{round_->world, *last_commit_});
    if (!other.set_aside_until) continue;
    EndSetAside(other);
    if (other.session) TellNewcomer(other);
  }
  TellOfCommit(member.id);
}

// After a new commit: rank 0's agent is told last, and not yet if a stop is about to follow.
void JobMachine::Rules::TellOfCommit(MemberId rank_zero) {
  round_->is_note_withheld = true;
  is_at_commit_ = true;
  Evaluate();
  is_at_commit_ = false;
  if (!round_ || !round_->is_note_withheld) return;
  const bool is_about_to_stop = state_ == JobState::kRunning && departures_since_ &&
                                round_->agreement.state() == Agreement::State::kSaved;
  if (is_about_to_stop) return;
  round_->is_note_withheld = false;
  SendTo(members_.at(rank_zero), CommitNoted{round_->world, *last_commit_});
}

void JobMachine::Rules::SendOpenGrant() {
  const std::optional<Commit> grant = round_->commits.OpenGrant();
  const Member* first = round_->slots.front().member;
  if (grant && first != nullptr) SendTo(*first, CommitGranted{round_->world, *grant});
}

}  // namespace muster::rendezvous
