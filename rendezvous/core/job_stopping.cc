// Stopping a round, what its failures cost, and how the job ends.
#include <algorithm>
#include <utility>

#include "rendezvous/core/job_rules.h"
#include "rendezvous/core/verdict.h"

namespace muster::rendezvous {

void JobMachine::Rules::Handle(Member& member, const WorkerFailed& message) {
  if (!IsCurrent(message.world) || !member.slot || IsFinal()) return;
  WorkerFailure failure = message.failure;
  if (failure.node_name.empty()) failure.node_name = member.attach.node_name;
  round_->last_step = std::max(round_->last_step, failure.last_step);
  round_->failures.Add(input_.now, failure);
  if (!round_->stop) {
    BeginStop(StopOrigin::kFailure, StopCause::kWorkerFailed, DescribeFailure(failure),
              failure.rank);
  } else if (round_->stop_origin == StopOrigin::kVanished &&
             round_->vanished_slot == *member.slot) {
    // The agent that came back without workers says why.
    round_->stop_origin = StopOrigin::kFailure;
  }
}

void JobMachine::Rules::Handle(Member& member, const WorkerSucceeded& message) {
  if (!IsCurrent(message.world) || !member.slot || IsFinal()) return;
  if (!std::exchange(round_->has_success, true)) TellWaiting();
}

void JobMachine::Rules::Handle(Member& member, const NodeSucceeded& message) {
  if (!IsCurrent(message.world) || !member.slot || round_->stop || IsFinal()) return;
  NoteSuccess(member, round_->slots[*member.slot]);
}

void JobMachine::Rules::NoteSuccess(Member& member, Slot& slot) {
  if (slot.state != SlotState::kRunning && slot.state != SlotState::kSucceeded) return;
  const bool is_first = !std::exchange(round_->has_success, true);
  if (slot.state == SlotState::kRunning) {
    round_->Set(slot, SlotState::kSucceeded);
    Note("node " + member.attach.node_name + " has finished " + RoundName());
  }
  SendTo(member, SuccessNoted{round_->world});
  // Who has finished saves no more.
  KnowStep(*member.slot);
  MaybeSucceed();
  if (is_first && !IsFinal()) TellWaiting();
  if (!IsFinal()) WeighDepartures();
}

void JobMachine::Rules::MaybeSucceed() {
  if (state_ != JobState::kRunning || MayBeOutdated()) return;
  const int finished = round_->Count(SlotState::kSucceeded) + round_->Count(SlotState::kDone);
  if (!MUSTER_PLANTED(kSuccessTooEarly, finished > 0, round_->AllSucceeded())) return;
  if (finished == 0) return;
  Verdict verdict;
  verdict.succeeded = true;
  EndJob(JobState::kSucceeded, std::move(verdict));
}

void JobMachine::Rules::Handle(Member& member, const StopDone& message) {
  if (message.candidate_port != 0) member.attach.candidate_port = message.candidate_port;
  if (!IsCurrent(message.world) || !member.slot || IsFinal()) return;
  Slot& slot = round_->slots[*member.slot];
  round_->last_step = std::max(round_->last_step, message.last_step);
  if (round_->stop) {
    if (slot.state != SlotState::kRunning && slot.state != SlotState::kSucceeded) return;
    round_->Set(slot, SlotState::kStopped);
    return MaybeFinishStop();
  }
  if (slot.state != SlotState::kRunning) return;
  // Nobody told it to: a stop of an earlier life of this rendezvous, most likely.
  round_->Set(slot, SlotState::kStopped);
  round_->vanished_slot = *member.slot;
  BeginStop(StopOrigin::kVanished, StopCause::kPeerLost,
            "node " + member.attach.node_name + " has no workers of " + RoundName() + " any more",
            slot.first_rank);
}

void JobMachine::Rules::BeginStop(StopOrigin origin, StopCause cause, const std::string& reason,
                                  Rank culprit) {
  state_ = JobState::kStopping;
  round_->stop = StopRound{round_->world, cause, reason, culprit};
  round_->stop_origin = origin;
  round_->stop_began = input_.now;
  Note(RoundName() + " stops: " + reason);
  for (const Slot& slot : round_->slots) {
    if (slot.state != SlotState::kRunning && slot.state != SlotState::kSucceeded) continue;
    if (slot.member != nullptr) SendTo(*slot.member, *round_->stop);
  }
  const Member* first = round_->slots.front().member;
  if (std::exchange(round_->is_note_withheld, false) && first != nullptr) {
    SendTo(*first, CommitNoted{round_->world, *last_commit_});
  }
  MaybeFinishStop();
}

void JobMachine::Rules::MaybeFinishStop() {
  if (state_ != JobState::kStopping) return;
  const int unanswered = round_->Count(SlotState::kRunning) + round_->Count(SlotState::kSucceeded) +
                         std::max(0, SlotsUnaccounted());
  // A world that is broken anyway is kept together for nobody: those who are missing in it are
  // awaited like any silent agent, not for reconnect_timeout.
  if (round_->Count(SlotState::kMissing) > 0) {
    recover_deadline_ = std::min(recover_deadline_, unheard_are_lost_at_);
  }
  if (!MUSTER_PLANTED(kStopNotAwaited, true, unanswered == 0)) return;
  if (MayBeOutdated()) return;
  FinishStop();
}

// The workers of a world that was replaced may report before those of the one that replaced it:
// what became of a recovered round is judged once all could report.
bool JobMachine::Rules::MayBeOutdated() const {
  return round_->is_recovered && input_.now < quiet_until_;
}

void JobMachine::Rules::FinishStop() {
  Round round = std::move(*round_);
  round_.reset();
  // A node that came back without its workers, or never: its peers may have died of it.
  if (round.Count(SlotState::kMissing) > 0) round.had_loss = true;
  effects_.emplace_back(RoundOver{round.world, round.stop->reason});
  for (Slot& slot : round.slots) {
    if (slot.member != nullptr) slot.member->slot.reset();
  }
  for (auto& [id, member] : members_) member.lost_recovered_round = false;
  places_vacated_ = 0;
  recover_deadline_ = Instant::Never();
  is_reforming_ = true;
  state_ = JobState::kGathering;
  waiting_reason_.clear();
  if (!ChargeFailures(round)) return;
  LetDepartingGo(round);
  Evaluate();
}

bool JobMachine::Rules::ChargeFailures(const Round& round) {
  const bool is_workers_fault = MUSTER_PLANTED(
      kLossCharged, true,
      round.stop_origin == StopOrigin::kFailure && !round.had_loss && !round.failures.empty());
  const std::string name = "round " + std::to_string(round.world.round.value);
  if (!is_workers_fault) {
    ledger_.Pass(*terms_, EndOf(round));
    Note(name + " is over; nothing is charged");
    return true;
  }
  RestartLedger::Answer answer;
  if (round.failures.Hopeless() == nullptr) answer = ledger_.Charge(*terms_, EndOf(round));
  if (answer.may_restart) {
    Note(name + " is over; restart " + std::to_string(ledger_.charged()) + " of " +
         std::to_string(terms_->max_restarts) + " is charged");
    return true;
  }
  Verdict verdict;
  if (round.failures.empty()) {
    verdict.exit_code = 1;
  } else {
    verdict = FailedByWorker(input_.now, round.failures, ledger_.charged(), answer.reason);
  }
  EndJob(JobState::kFailed, std::move(verdict));
  return false;
}

RestartLedger::RoundEnd JobMachine::Rules::EndOf(const Round& round) const {
  RestartLedger::RoundEnd end;
  end.at = input_.now;
  end.uptime = round.stop_began - round.began;
  end.is_recovered = round.is_recovered;
  end.last_step = round.last_step;
  if (!round.failures.empty()) end.culprit = round.failures.root().rank;
  return end;
}

std::string JobMachine::Rules::WhoIsMissing() const {
  std::vector<std::string> missing;
  if (terms_->is_static) {
    // The first to be missing is soon found, whatever the size of the job.
    for (int rank = 0; rank < terms_->max_nodes && missing.size() <= kMaxMissingNamed; ++rank) {
      if (!holders_.contains(rank)) missing.push_back("--node-rank " + std::to_string(rank));
    }
  } else {
    for (const std::string& name : gone_) {
      // Several agents of one host have one name.
      const bool is_here = std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
        return entry.second.attach.node_name == name;
      });
      if (!is_here) missing.push_back("node " + name);
    }
  }
  std::string text;
  for (size_t i = 0; i < std::min(missing.size(), kMaxMissingNamed); ++i) {
    text += (i > 0 ? ", " : "") + missing[i];
  }
  if (missing.size() > kMaxMissingNamed) text += " and others";
  return text.empty() ? "" : text + (missing.size() == 1 ? " is missing; " : " are missing; ");
}

void JobMachine::Rules::FailBelowMin(int exit_code, const std::string& cause) {
  Verdict verdict;
  verdict.exit_code = exit_code;
  verdict.reason = std::to_string(ReadyNodes()) + " of " +
                   NodeRange(terms_->min_nodes, terms_->max_nodes) +
                   (ReadyNodes() == 1 ? " is here (" : " are here (") + cause + "); ";
  if (exit_code == kExitTimedOut) verdict.reason += WhoIsMissing();
  if (!failed_starts_.empty()) verdict.reason += failed_starts_.Text() + "; ";
  if (set_aside_attached_ > 0) {
    verdict.reason += std::to_string(set_aside_attached_) +
                      " more were lost too often and are set aside (--max-node-failures); ";
  }
  verdict.reason +=
      exit_code == kExitRunAgain
          ? "run it again with at least " + std::to_string(terms_->min_nodes)
          : "start at least " + std::to_string(terms_->min_nodes) + ", or lower MIN of --nnodes";
  EndJob(JobState::kFailed, std::move(verdict));
}

void JobMachine::Rules::EndJob(JobState state, Verdict verdict) {
  state_ = state;
  verdict.restarts_charged = ledger_.charged();
  verdict_ = std::move(verdict);
  const std::string how = verdict_->succeeded ? "succeeded" : "failed: " + verdict_->reason;
  Note(how + (round_ ? " (in " + RoundName() + ")" : ""));
  // Agents show it as it is.
  if (!verdict_->succeeded) verdict_->reason = "job " + run_id_ + " " + how;
  Keep(/*before_the_rest=*/true);
  if (round_) effects_.emplace_back(RoundOver{round_->world, "the job has " + how});
  for (auto& [id, member] : members_) {
    member.slot.reset();
    SendTo(member, JobEnded{*verdict_});
  }
  for (const auto& [session, claim] : claimants_) {
    SendOn(session, JobEnded{*verdict_});
    effects_.emplace_back(EndSession{session});
  }
  claimants_.clear();
  round_.reset();
  recover_deadline_ = Instant::Never();
  notice_due_ = Instant::Never();
  ask_again_ = Instant::Never();
  below_min_since_.reset();
}

}  // namespace muster::rendezvous
