// Who may come into the job's room, and what one who comes back on a new stream has missed.
#include <algorithm>
#include <utility>

#include "rendezvous/core/attach_check.h"
#include "rendezvous/core/facts_check.h"
#include "rendezvous/core/job_rules.h"

namespace muster::rendezvous {

void JobMachine::Rules::OnAttach(SessionId session, const Attach& attach) {
  // One session, two agents: whoever was on it before has lost it.
  if (auto other = sessions_.find(session);
      other != sessions_.end() && other->second != FindIncarnation(attach.incarnation)) {
    Member& before = *other->second;
    Unbind(before);
    graces_.Renew(before.id, input_.now);
  }
  const JobPast past = PastOf(attach);
  std::optional<std::string> problem = MalformedAttach(attach);
  if (!problem && options_.record.verdict && past.round > options_.record.world.round) {
    VoidVerdict(attach);
  }
  if (IsFinal()) return AttachAfterEnd(session, attach);
  if (auto released = released_.find(attach.incarnation); released != released_.end()) {
    // It was let go and didn't hear of it.
    SendOn(session, JobEnded{released->second});
    effects_.emplace_back(EndSession{session});
    return;
  }
  if (!problem && terms_) {
    problem = Disagreement(*terms_, opener_, attach);
    if (!problem) problem = AddressProblem(opener_, attach);
    if (problem && !has_formed_ && !round_ && past > opener_.past) {
      YieldTo(attach);
      problem.reset();
    }
  }
  if (problem) return Refuse(session, RefusalCode::kDisagrees, "job " + run_id_ + ": " + *problem);
  if (!terms_) {
    terms_ = attach.terms;
    opener_ = {attach.node_name, attach.address, past};
  }
  opener_.past = std::max(opener_.past, past);
  round_elsewhere_ = std::max(round_elsewhere_, attach.round_elsewhere);
  highest_round_ = std::max({highest_round_, past.round, round_elsewhere_});
  ledger_.LearnCharged(attach.restarts_charged);
  bool is_news = last_commit_.Learn(attach.last_commit, attach.highest_round);
  // Of newcomers alone it would be another job that happens to have this run id.
  if (past > JobPast{}) {
    is_news |= last_commit_.Learn(options_.record.commit, options_.record.commit_round);
  }
  if (is_news) Keep(/*before_the_rest=*/false);
  Member* known = FindIncarnation(attach.incarnation);
  if (known != nullptr) return Reattach(*known, session, attach);
  if (attach.running && MUSTER_PLANTED(kNoRecovering, false, true)) {
    return AttachRunning(session, attach);
  }
  AttachNewcomer(session, attach);
}

void JobMachine::Rules::VoidVerdict(const Attach& later) {
  Note("node " + later.node_name + " has seen round " + std::to_string(PastOf(later).round.value) +
       ", after the end that was kept: the job goes on");
  options_.record.verdict.reset();
  verdict_.reset();
  state_ = JobState::kGathering;
  // They were told of that end.
  while (!members_.empty()) {
    Member& member = members_.begin()->second;
    if (member.session) effects_.emplace_back(EndSession{*member.session});
    RemoveMember(member);
  }
  gone_.clear();
}

void JobMachine::Rules::YieldTo(const Attach& veteran) {
  // Whoever opened the job here knew less of it than one who was in it before this rendezvous
  // started.
  Note("node " + veteran.node_name + " was in the job before node " + opener_.node_name +
       " opened it here, so its terms hold");
  terms_ = veteran.terms;
  opener_ = {veteran.node_name, veteran.address, PastOf(veteran)};
  below_min_since_.reset();
  min_first_reached_.reset();
  waiting_reason_.clear();
  std::vector<Member*> others;
  for (auto& [id, member] : members_) others.push_back(&member);
  for (Member* member : others) {
    std::optional<std::string> problem = Disagreement(*terms_, opener_, member->attach);
    if (!problem) problem = AddressProblem(opener_, member->attach);
    if (!problem) continue;
    if (member->session)
      Refuse(*member->session, RefusalCode::kDisagrees, "job " + run_id_ + ": " + *problem);
    const std::string name = member->attach.node_name;
    RemoveMember(*member);
    // Nobody waits for a stranger.
    gone_.erase(name);
  }
}

void JobMachine::Rules::AttachNewcomer(SessionId session, const Attach& attach) {
  if (Member* holder = HolderOf(attach)) {
    if (holder->session) {
      Note("node " + attach.node_name + " asks for --node-rank " +
           std::to_string(*attach.node_rank) + " of node " + holder->attach.node_name +
           "; waiting for a sign of life of the latter");
      claimants_[session] = attach;
      return;
    }
    // Nothing is decided before the newcomer counts: a round would begin without it.
    is_replacing_ = true;
    Lose({holder}, "node " + attach.node_name + " came in its place");
    is_replacing_ = false;
    // From the start: the loss may have ended the job.
    return OnAttach(session, attach);
  }
  Member& member = AddMember(session, attach);
  host_is_new_ |= attach.hosts_rendezvous && PastOf(attach) == JobPast{};
  SendTo(member, Attached{options_.lease, options_.reconnect_timeout});
  Note("node " + attach.node_name + " joined; " + std::to_string(sessions_.size()) + " of " +
       NodeRange(terms_->min_nodes, terms_->max_nodes) + " attached");
  CompareFacts(member);
  // It was sent away before this rendezvous, or before it was replaced: it gets no place any more.
  if (attach.is_drained) {
    member.departure = Member::Departure::ByDrain();
    has_idle_leavers_ = true;
  }
  const MemberId id = member.id;
  if (round_ && round_->is_recovered && attach.highest_round == round_->world.round) {
    member.lost_recovered_round = true;
    ++places_vacated_;
    WeighRecovery();
  }
  Evaluate();
  // It may be gone, or be in a round; the job may have ended.
  if (auto still = members_.find(id); still != members_.end()) TellNewcomer(still->second);
}

void JobMachine::Rules::Reattach(Member& member, SessionId session, const Attach& attach) {
  if (member.session && *member.session != session) {
    effects_.emplace_back(EndSession{*member.session});
    Unbind(member);
  }
  member.attach = attach;
  member.attach.running.reset();
  member.attached_at = input_.now;
  Bind(member, session);
  SendTo(member, Attached{options_.lease, options_.reconnect_timeout});
  if (member.departure && member.departure->is_drained && !attach.is_drained) {
    SendTo(member, Drained{});
  }
  if (!claimants_.empty()) RefuseClaimants(member);
  const bool runs_current = attach.running && IsCurrent(attach.running->world);
  if (attach.running && !(member.slot && runs_current)) {
    return Supersede(member, "it still ran round " +
                                 std::to_string(attach.running->world.round.value) +
                                 ", which is over for it");
  }
  if (!member.slot) {
    member.told.clear();
    Evaluate();
    if (FindIncarnation(attach.incarnation) == &member) TellNewcomer(member);
    return;
  }
  if (runs_current) {
    ResumeSlot(member, *attach.running);
  } else {
    ReattachWithoutWorkers(member, attach);
  }
}

void JobMachine::Rules::ResumeSlot(Member& member, const RunningWorld& running) {
  Slot& slot = round_->slots[*member.slot];
  ledger_.LearnCharged(running.restarts_charged);
  if (last_commit_.Learn(running.last_commit, running.world.round)) Keep(/*before_the_rest=*/false);
  const bool has_success = running.worker_succeeded || running.succeeded;
  if (has_success && !std::exchange(round_->has_success, true)) TellWaiting();
  if (round_->stop) {
    // Even if it said StopDone before: what it says now is the truth.
    if (slot.state == SlotState::kStopped) round_->Set(slot, SlotState::kRunning);
    SendTo(member, *round_->stop);
    return;
  }
  if (last_commit_.has_value() && running.last_commit != last_commit_.get()) {
    SendTo(member, CommitNoted{round_->world, *last_commit_});
  }
  if (slot.group_rank == GroupRank(0)) SendOpenGrant();
  ResendAgreement(member, *member.slot);
  if (running.succeeded || slot.state == SlotState::kSucceeded) NoteSuccess(member, slot);
}

void JobMachine::Rules::ReattachWithoutWorkers(Member& member, const Attach& attach) {
  Slot& slot = round_->slots[*member.slot];
  if (slot.state == SlotState::kSucceeded && !round_->stop) {
    SendTo(member, SuccessNoted{round_->world});
  } else if (round_->stop) {
    // Its StopDone, or the StartRound before it, went down with the stream; or its lease ended and
    // it killed its workers, and then the failures of its peers are of its making. Which one can't
    // be told, so nothing is charged if it had started any.
    const bool had_workers = attach.highest_round >= round_->world.round;
    if (slot.state == SlotState::kRunning && had_workers) round_->had_loss = true;
    if (slot.state != SlotState::kStopped) round_->Set(slot, SlotState::kStopped);
    MaybeFinishStop();
  } else if (!round_->is_recovered && attach.highest_round < round_->world.round) {
    SendTo(member, PlaceOf(slot));
  } else {
    // A WorkerFailed that explains it may follow, so its StopDone is awaited, too.
    round_->vanished_slot = *member.slot;
    BeginStop(StopOrigin::kVanished, StopCause::kPeerLost,
              "node " + attach.node_name + " has no workers of " + RoundName() + " any more",
              slot.first_rank);
  }
}

std::optional<JobRecord> JobMachine::Rules::OpenedAnewBy(const Attach& attach) const {
  const bool is_newcomer =
      !attach.running && !attach.was_attached && attach.highest_round.value == 0;
  if (!is_newcomer || !IsDone() || verdict_->exit_code != kExitRunAgain) return std::nullopt;
  JobRecord anew;
  // Rounds only grow.
  anew.world.round = highest_round_;
  return anew;
}

void JobMachine::Rules::AttachAfterEnd(SessionId session, const Attach& attach) {
  Member* member = FindIncarnation(attach.incarnation);
  if (member == nullptr) {
    member = &AddMember(session, attach);
  } else {
    if (member->session && *member->session != session) {
      effects_.emplace_back(EndSession{*member->session});
      Unbind(*member);
    }
    Bind(*member, session);
  }
  SendTo(*member, JobEnded{*verdict_});
}

void JobMachine::Rules::Refuse(SessionId session, RefusalCode code, const std::string& message) {
  Note("refused a node: " + message);
  SendOn(session, Refused{code, message});
  effects_.emplace_back(EndSession{session});
  auto known = sessions_.find(session);
  if (known == sessions_.end()) return;
  Member& member = *known->second;
  Unbind(member);
  graces_.Renew(member.id, input_.now);
}

void JobMachine::Rules::Supersede(Member& member, const std::string& why) {
  const SessionId session = *member.session;
  SendOn(session,
         Refused{RefusalCode::kSuperseded, "job " + run_id_ + ": node " + member.attach.node_name +
                                               " is superseded: " + why + "; it has to join anew"});
  Lose({&member}, why);
}

Member& JobMachine::Rules::AddMember(SessionId session, const Attach& attach) {
  const MemberId id(++arrivals_);
  Member& member = members_[id];
  member.id = id;
  member.attach = attach;
  member.attach.running.reset();
  member.attached_at = input_.now;
  gone_.erase(attach.node_name);
  incarnations_[attach.incarnation] = &member;
  if (attach.node_rank) holders_[*attach.node_rank] = &member;
  Bind(member, session);
  if (auto until = losses_.SetAsideUntil(attach.node_name, input_.now)) SetAside(member, *until);
  return member;
}

void JobMachine::Rules::CompareFacts(const Member& newcomer) {
  const Member& first = members_.begin()->second;
  const std::string& name = newcomer.attach.node_name;
  if (&first == &newcomer || known_to_differ_.contains(name)) return;
  std::string text = DifferencesOf({first.attach.node_name, first.attach.facts, first.attached_at},
                                   {name, newcomer.attach.facts, newcomer.attached_at});
  const std::string program = OtherStaticProgram(*terms_, opener_, newcomer.attach);
  if (!program.empty()) AddReason(text, program);
  if (text.empty()) return;
  SendTo(newcomer, Notice{text, round_ ? round_->world.round : RoundId()});
  if (known_to_differ_.size() >= kMaxKnownToDiffer) return;
  known_to_differ_.insert(name);
  Note(text);
}

void JobMachine::Rules::Bind(Member& member, SessionId session) {
  if (!member.session && member.set_aside_until) ++set_aside_attached_;
  member.session = session;
  member.last_message = input_.now;
  sessions_[session] = &member;
  graces_.Drop(member.id);
  leases_.Renew(member.id, input_.now);
}

void JobMachine::Rules::Unbind(Member& member) {
  if (!member.session) return;
  if (member.set_aside_until) --set_aside_attached_;
  sessions_.erase(*member.session);
  member.session.reset();
  leases_.Drop(member.id);
}

void JobMachine::Rules::RemoveMember(Member& member) {
  Unbind(member);
  graces_.Drop(member.id);
  if (member.lost_recovered_round) --places_vacated_;
  if (round_ && member.slot) {
    round_->slots[*member.slot].member = nullptr;
    --round_->occupied;
  }
  if (member.attach.node_rank) {
    auto holder = holders_.find(*member.attach.node_rank);
    if (holder != holders_.end() && holder->second == &member) holders_.erase(holder);
  }
  if (gone_.size() < kMaxMissingNamed) gone_.insert(member.attach.node_name);
  incarnations_.erase(member.attach.incarnation);
  members_.erase(member.id);
}

Member* JobMachine::Rules::FindIncarnation(const Incarnation& incarnation) {
  auto known = incarnations_.find(incarnation);
  return known == incarnations_.end() ? nullptr : known->second;
}

Member* JobMachine::Rules::HolderOf(const Attach& attach) {
  if (!attach.node_rank) return nullptr;
  auto holder = holders_.find(*attach.node_rank);
  return holder == holders_.end() ? nullptr : holder->second;
}

void JobMachine::Rules::RefuseClaimants(const Member& holder) {
  std::vector<SessionId> refused;
  for (const auto& [session, claim] : claimants_) {
    if (HolderOf(claim) == &holder) refused.push_back(session);
  }
  for (SessionId session : refused) {
    const Attach claim = std::move(claimants_.at(session));
    claimants_.erase(session);
    Refuse(session, RefusalCode::kDisagrees,
           "job " + run_id_ + ": nodes " + holder.attach.node_name + " and " + claim.node_name +
               " both have --node-rank=" + std::to_string(*claim.node_rank) +
               "; give each node its own" +
               (terms_->is_static ? ", from 0 to " + std::to_string(terms_->max_nodes - 1) : ""));
  }
}

void JobMachine::Rules::AdmitClaimants() {
  // Those whose holder is gone attach once more: their lease counts from their Attach, which is up
  // to a lease old, and they would have to stop as soon as they start.
  std::vector<SessionId> free;
  for (const auto& [session, claim] : claimants_) {
    if (HolderOf(claim) == nullptr) free.push_back(session);
  }
  for (SessionId session : free) {
    claimants_.erase(session);
    effects_.emplace_back(EndSession{session});
  }
}

}  // namespace muster::rendezvous
