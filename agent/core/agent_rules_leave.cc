// Going in order: this node's workers go on until the job has a checkpoint after a step that all
// ranks agreed on, and only then it leaves. And this node's part in agreeing, whoever leaves.
#include <algorithm>
#include <csignal>
#include <utility>

#include "agent/core/agent_rules.h"
#include "agent/core/exit_code.h"
#include "agent/core/own_verdict.h"
#include "base/signal_name.h"

namespace muster::agent {
namespace {

// Of --shutdown-timeout, what is kept for the workers' end by SIGTERM if no checkpoint comes.
constexpr Duration kMostReserved = std::chrono::seconds(5);

Duration Reserve(Duration shutdown_timeout) {
  return std::min<Duration>(kMostReserved, shutdown_timeout / 4);
}

}  // namespace

bool AgentRules::CanDepart(const StopRequested& event) const {
  return event.signal == SIGTERM && times_.shutdown_timeout > Duration(0) &&
         contact_.is_attached() && group_ && group_->is_live() && !group_->has_succeeded() &&
         group_->can_save();
}

void AgentRules::Depart(const StopRequested& event) {
  const std::string notice = event.notice.empty() ? SignalName(event.signal) : event.notice;
  departure_ =
      Departure{.signal = event.signal,
                .notice = notice,
                .is_by_notice = !event.notice.empty(),
                .why = "preempted (" + notice + ")",
                .gives_up_at = now_ + times_.shutdown_timeout - Reserve(times_.shutdown_timeout),
                .ends_at = now_ + times_.shutdown_timeout,
                .saved_step = std::nullopt};
  ShowLine(departure_->why +
           ": this node leaves after a checkpoint that all nodes agree on, within " +
           DurationText(times_.shutdown_timeout) + " (--shutdown-timeout)" + WhatFollowsStop());
  Send(LeaveRequest{.world = group_->world(), .reason = departure_->why});
}

bool AgentRules::StaysForOthers() const {
  // Of others that wait only the rendezvous knows: what it says when it lets this node go.
  return options_.attach.hosts_rendezvous && group_ && group_->place().group_world_size > 1;
}

std::string AgentRules::WhatFollowsStop() const {
  if (!options_.explains_signals) return "";
  return StaysForOthers() ? "; this process hosts the rendezvous and stays until the job ends on "
                            "the other nodes; a second signal ends the job on all of them"
                          : "; a second signal kills the workers";
}

Verdict AgentRules::VerdictOnDeparture() const {
  return departure_->saved_step ? VerdictOfDeparture(departure_->why, *departure_->saved_step)
                                : VerdictOfStop(departure_->signal, departure_->notice);
}

Verdict AgentRules::VerdictOfStop(int signal, const std::string& notice) const {
  Verdict verdict = VerdictOfUserStop(signal, notice);
  // Schedulers let SIGTERM follow: it is the same wish, and the job goes on without this node.
  if (is_drained_ && signal == SIGTERM) {
    verdict.reason = "drained (muster drain) and " + verdict.reason + "; run it again to join";
    verdict.exit_code = kExitRunAgain;
  }
  return verdict;
}

Instant AgentRules::DepartureDue() const {
  if (!departure_ || ending_) return Instant::Never();
  if (group_ && group_->is_live()) return departure_->gives_up_at;
  // SIGKILL is on its way; what comes then is an event.
  if (HasProcesses() && group_->is_being_killed()) return Instant::Never();
  return departure_->ends_at;
}

void AgentRules::ServeDeparture() {
  if (!departure_ || ending_) return;
  if (!HasProcesses() && !contact_.is_attached()) {
    // Nothing runs here and nobody can let us go.
    return EndWith({.verdict = VerdictOnDeparture()},
                   PlanUserStop(departure_->signal, /*is_repeated=*/true, times_));
  }
  if (now_ < DepartureDue()) return;
  const StopPlan kill = PlanUserStop(departure_->signal, /*is_repeated=*/true, times_);
  if (group_ && group_->is_live()) {
    ShowLine("no checkpoint was made in time: stopping the workers without it");
    const StopPlan rest{.first_signal = departure_->signal,
                        .grace = departure_->ends_at - departure_->gives_up_at};
    EndWith({.verdict = VerdictOnDeparture(), .takes_leave = true}, rest);
  } else if (HasProcesses()) {
    Stop(kill);
  } else {
    EndWith({.verdict = VerdictOnDeparture(), .takes_leave = true}, kill);
  }
}

void AgentRules::NoteSaved(const Commit& commit) {
  if (departure_ && agreed_.step && commit.step >= *agreed_.step) {
    departure_->saved_step = commit.step;
  }
}

void AgentRules::Said(const Drained&) {
  if (!std::exchange(is_drained_, true) && !ending_) {
    ShowLine(std::string("this node is sent away (muster drain)") +
             (StaysForOthers() ? "; this process hosts the rendezvous and stays until the job ends "
                                 "on the other nodes"
                               : ""));
  }
}

// ---- the agreement -------------------------------------------------------------------------

void AgentRules::Said(const CheckpointWanted& message) {
  if (!IsLive(message.world) || group_->place().first_rank != Rank(0)) return;
  if (agreed_.announced) {
    // Asked anew by a rendezvous that restarted.
    Send(CheckpointStep{.world = message.world, .step = *agreed_.announced});
  } else {
    Emit(AskForCheckpoint{.world = message.world});
  }
}

void AgentRules::On(const WorkerAnnouncedCheckpoint& event) {
  // The end of the round has answered it, or will.
  if (!IsLive(event.world)) return;
  agreed_.announced = event.step;
  if (contact_.is_attached()) Send(CheckpointStep{.world = event.world, .step = event.step});
}

void AgentRules::Said(const CheckpointAt& message) {
  if (!group_ || group_->world() != message.world) return;
  // Of a group that has ended, nobody has to know. One that is being stopped has no say.
  if (!group_->is_live()) return;
  if (agreed_.step != message.step) {
    agreed_.step = message.step;
    agreed_.known_by.clear();
  }
  if (!AllKnowTheStep()) Emit(TellCheckpoint{.world = message.world, .step = message.step});
  SayIfAllKnow();
}

void AgentRules::On(const WorkerKnowsCheckpoint& event) {
  if (!IsLive(event.world) || agreed_.step != event.step) return;
  agreed_.known_by.insert(event.local_rank);
  SayIfAllKnow();
}

bool AgentRules::AllKnowTheStep() const {
  for (int i = 0; i < group_->worker_count(); ++i) {
    if (group_->is_running(LocalRank(i)) && !agreed_.known_by.contains(LocalRank(i))) return false;
  }
  return true;
}

void AgentRules::SayIfAllKnow() {
  // Without contact it is asked for again by whoever answers next.
  if (!agreed_.step || !contact_.is_attached() || !AllKnowTheStep()) return;
  Send(CheckpointStepKnown{.world = group_->world(), .step = *agreed_.step});
}

void AgentRules::Said(const CheckpointAgreed& message) {
  if (!IsLive(message.world) || agreed_.announced != message.step) return;
  agreed_.announced.reset();
  Emit(AgreeOnCheckpoint{.world = message.world});
}

}  // namespace muster::agent
