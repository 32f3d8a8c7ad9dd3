// A rendezvous that came back empty: the agents that still run a world tell it what there is.
#include <utility>

#include "rendezvous/core/job_rules.h"
#include "rendezvous/core/verdict.h"

namespace muster::rendezvous {

void JobMachine::Rules::AttachRunning(SessionId session, const Attach& attach) {
  const RunningWorld& running = *attach.running;
  const bool is_possible =
      running.group_world_size >= 1 && running.group_world_size <= terms_->max_nodes;
  // Not behind a round that others have seen, even if that one is over by now.
  const bool is_newer = is_possible && !has_formed_ && running.world.round >= highest_round_ &&
                        (!round_ || running.world.round > round_->world.round);
  if (is_newer) {
    if (round_) DropRecoveredRound(running.world);
    BeginRecovering(attach);
  }
  if (IsCurrent(running.world) && FitsRound(attach)) return TakeSlot(session, attach);
  const std::string round = "round " + std::to_string(running.world.round.value);
  const std::string why = round_ && running.world == round_->world
                              ? "it counts as lost from " + round
                              : round + " (world " + running.world.id.ToHex().substr(0, 8) +
                                    ") is over" + (round_ ? "; the job is in " + RoundName() : "");
  Refuse(session, RefusalCode::kSuperseded,
         "job " + run_id_ + ": node " + attach.node_name + " still ran an older world: " + why +
             "; it has to stop its workers and join anew");
}

void JobMachine::Rules::BeginRecovering(const Attach& attach) {
  const RunningWorld& running = *attach.running;
  round_.emplace();
  round_->world = running.world;
  round_->world_size = running.world_size;
  round_->is_recovered = true;
  round_->began = input_.now;
  round_->Resize(running.group_world_size);
  state_ = JobState::kRecovering;
  recover_deadline_ = input_.now + options_.reconnect_timeout;
  below_min_since_.reset();
  ask_again_ = Instant::Never();
  effects_.emplace_back(RoundStarted{round_->world, running.group_world_size, running.world_size});
  Keep(/*before_the_rest=*/false);
  Note("recovering " + RoundName() + ": node " + attach.node_name + " still runs it");
  // Those who came before and have seen this round have lost their place in it.
  for (auto& [id, member] : members_) {
    if (member.attach.highest_round != round_->world.round || member.lost_recovered_round) continue;
    member.lost_recovered_round = true;
    ++places_vacated_;
  }
}

void JobMachine::Rules::DropRecoveredRound(const World& newer) {
  Note(RoundName() + " is stopped: a node still runs the newer round " +
       std::to_string(newer.round.value));
  effects_.emplace_back(RoundOver{round_->world, "a newer round runs"});
  std::vector<Member*> superseded;
  for (Slot& slot : round_->slots) {
    if (slot.member == nullptr) continue;
    slot.member->slot.reset();
    // Who has stopped its workers waits like a newcomer.
    if (slot.state != SlotState::kStopped) {
      superseded.push_back(slot.member);
    } else if (slot.member->departure) {
      has_idle_leavers_ = true;
    }
  }
  round_.reset();
  departures_since_.reset();
  checkpoint_due_ = Instant::Never();
  recover_deadline_ = Instant::Never();
  for (auto& [id, member] : members_) member.lost_recovered_round = false;
  places_vacated_ = 0;
  for (Member* member : superseded) {
    if (member->session) {
      SendTo(*member, Refused{RefusalCode::kSuperseded,
                              "job " + run_id_ + ": node " + member->attach.node_name +
                                  " ran an older world; it has to stop its workers and join anew"});
      effects_.emplace_back(EndSession{*member->session});
    }
    RemoveMember(*member);
  }
}

bool JobMachine::Rules::FitsRound(const Attach& attach) const {
  const RunningWorld& running = *attach.running;
  const auto nodes = static_cast<int>(round_->slots.size());
  return running.group_world_size == nodes && running.world_size == round_->world_size &&
         running.group_rank.value >= 0 && running.group_rank.value < nodes &&
         round_->slots[running.group_rank.value].state == SlotState::kMissing &&
         running.first_rank.value >= 0 &&
         running.first_rank.value <= running.world_size - attach.worker_count;
}

void JobMachine::Rules::TakeSlot(SessionId session, const Attach& attach) {
  const RunningWorld& running = *attach.running;
  if (Member* holder = HolderOf(attach)) {
    // The one that runs the world had this --node-rank first, unless both do.
    if (holder->slot) {
      return Refuse(session, RefusalCode::kDisagrees,
                    "job " + run_id_ + ": nodes " + holder->attach.node_name + " and " +
                        attach.node_name + " both run " + RoundName() + " with --node-rank=" +
                        std::to_string(*attach.node_rank) + "; give each its own");
    }
    if (holder->session) {
      SendTo(*holder, Refused{RefusalCode::kDisagrees,
                              "job " + run_id_ + ": nodes " + attach.node_name + " and " +
                                  holder->attach.node_name + " both have --node-rank=" +
                                  std::to_string(*attach.node_rank) + "; give each its own"});
      effects_.emplace_back(EndSession{*holder->session});
    }
    RemoveMember(*holder);
  }
  Member& member = AddMember(session, attach);
  const size_t index = running.group_rank.value;
  Slot& slot = round_->slots[index];
  slot.member = &member;
  ++round_->occupied;
  slot.group_rank = running.group_rank;
  slot.first_rank = running.first_rank;
  slot.worker_count = attach.worker_count;
  member.slot = index;
  member.last_group_rank = running.group_rank;
  round_->Set(slot, SlotState::kRunning);
  ledger_.LearnCharged(running.restarts_charged);
  round_->restarts_charged = ledger_.charged();
  SendTo(member, Attached{options_.lease, options_.reconnect_timeout});
  Note("node " + attach.node_name + " is back in " + RoundName() + " as group rank " +
       std::to_string(index));
  ResumeSlot(member, running);
  if (attach.is_drained) NoteDeparture(member, Member::Departure::ByDrain());
  if (!IsFinal()) WeighRecovery();
}

int JobMachine::Rules::SlotsUnaccounted() const {
  // A host that was started anew had a place, as hosts do, and won't come back to it.
  const int host = host_is_new_ && input_.now >= quiet_until_ ? 1 : 0;
  return round_->Count(SlotState::kMissing) - places_vacated_ - host;
}

void JobMachine::Rules::WeighRecovery() {
  if (!round_ || !round_->is_recovered) return;
  if (round_->Count(SlotState::kMissing) == 0) recover_deadline_ = Instant::Never();
  if (round_->stop) return MaybeFinishStop();
  if (state_ != JobState::kRecovering) return;
  if (round_->Count(SlotState::kMissing) == 0) {
    state_ = JobState::kRunning;
    Note(RoundName() + " is complete again: running");
    SendOpenGrant();
    MaybeSucceed();
    if (!IsFinal()) Evaluate();
    // Newcomers were told to wait for the nodes that are back now.
    if (state_ == JobState::kRunning) TellWaiting();
  } else if (SlotsUnaccounted() <= 0) {
    std::string why;
    for (const auto& [id, member] : members_) {
      if (member.lost_recovered_round)
        AddReason(why, "node " + member.attach.node_name + " came back without its workers");
    }
    if (host_is_new_) AddReason(why, "the node that hosts the rendezvous was started anew");
    if (why.empty()) why = "nodes came back without their workers";
    BeginStop(StopOrigin::kLoss, StopCause::kPeerLost, RoundName() + " is incomplete: " + why,
              Rank(-1));
  }
}

void JobMachine::Rules::GiveUpMissing() {
  recover_deadline_ = Instant::Never();
  if (!round_) return;
  const int missing = round_->Count(SlotState::kMissing);
  for (Slot& slot : round_->slots) {
    if (slot.state == SlotState::kMissing) round_->Set(slot, SlotState::kLost);
  }
  round_->had_loss = true;
  if (round_->stop) return MaybeFinishStop();
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(options_.reconnect_timeout).count();
  BeginStop(StopOrigin::kLoss, StopCause::kPeerLost,
            std::to_string(missing) + " of " +
                Counted(static_cast<int>(round_->slots.size()), "node") + " of " + RoundName() +
                " did not come back within " + std::to_string(seconds) +
                " s of the rendezvous' restart",
            Rank(-1));
}

}  // namespace muster::rendezvous
