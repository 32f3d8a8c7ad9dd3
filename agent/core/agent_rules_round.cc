#include <algorithm>
#include <utility>

#include "agent/core/agent_rules.h"
#include "agent/core/failure_report.h"

namespace muster::agent {
namespace {

constexpr char kRoundOfCheckpointIsOver[] = "the round of this checkpoint is over";

}  // namespace

// ---- the group -----------------------------------------------------------------------------

void AgentRules::Said(const StartRound& message) {
  if (ending_) return;
  if (group_ && group_->world() == message.world) return;  // resent
  if (waiting_start_ && waiting_start_->world == message.world) return;
  // Stale: rounds only grow, and this agent told the highest one that it has seen.
  if (message.world.round <= highest_round_) return;
  highest_round_ = message.world.round;
  if (departure_) {
    // Our wish to go was lost with a rendezvous that restarted.
    return EndWith({.verdict = VerdictOnDeparture(), .takes_leave = true},
                   PlanUserStop(departure_->signal, true, times_));
  }
  if (!group_) {
    Spawn(message);
    return;
  }
  waiting_start_ = message;
  if (!group_->is_told()) {
    // The rendezvous is past our world though it never said so here: nothing of it counts.
    EndRound(Rank(-1), "a newer round has begun");
    group_->Fence();
    Stop(PlanStop(StopCause::kSuperseded, times_));
  }
  if (group_->is_gone()) StartWhatWaits();
}

void AgentRules::Spawn(const StartRound& place) {
  group_.emplace(place, options_.attach.worker_count);
  agreed_ = {};
  hang_watch_.RoundStarts({.first_rank = place.first_rank,
                           .worker_count = options_.attach.worker_count,
                           .has_other_nodes = place.group_world_size > 1},
                          now_);
  restarts_charged_ = place.restarts_charged;
  stopped_.clear();
  if (place.resume) last_commit_ = place.resume;
  if (place.attempt > 0) {
    int last = place.first_rank.value + options_.attach.worker_count - 1;
    ShowLine("round " + std::to_string(place.world.round.value) + " starts (attempt " +
             std::to_string(place.attempt) + "): ranks " + std::to_string(place.first_rank.value) +
             " to " + std::to_string(last) + " of " + std::to_string(place.world_size) +
             " run on this node");
  }
  Emit(RenewDeadline{contact_.guardian_deadline()});
  Emit(SpawnGroup{place});
}

void AgentRules::StartWhatWaits() {
  group_.reset();
  if (!waiting_start_) return;
  Spawn(*std::exchange(waiting_start_, std::nullopt));
}

void AgentRules::Said(const StopRound& message) {
  if (waiting_start_ && waiting_start_->world == message.world) waiting_start_.reset();
  if (!group_ || group_->world() != message.world) {
    Send(StopDone{.world = message.world});
    return;
  }
  // What failed here has been shown already, but it may have followed a failure elsewhere.
  if (!group_->HasFailed(message.culprit) && !ending_ && !message.reason.empty()) {
    ShowLine("round " + std::to_string(message.world.round.value) + " stops: " + message.reason);
  }
  EndRound(message.culprit, message.reason);
  group_->ToldToStop();
  if (group_->is_gone()) {
    Send(group_->ToStopDone());
    group_.reset();
    return;
  }
  Stop(PlanStop(message.cause, times_));
}

void AgentRules::On(const WorkerStarted& event) {
  if (group_ && group_->round() == event.round) group_->Started(event.local_rank, event.pid);
}

void AgentRules::On(const WorkerSaidHello& event) {
  if (!group_ || group_->round() != event.round) return;
  group_->SaidHello(event.local_rank);
  // Whoever says it answers pings, too.
  hang_watch_.Answered(event.local_rank, std::nullopt, now_);
}

void AgentRules::On(const WorkerEnded& event) {
  if (!group_ || group_->round() != event.round) return;
  hang_watch_.Left(event.local_rank);
  WorkerFailure failure = event.failure;
  failure.last_step = group_->last_step(event.local_rank);
  failure.age = now_ - std::min(event.at.value_or(now_), now_);
  switch (group_->Ended(event.local_rank, failure, now_)) {
    case WorkerGroup::Change::kNothing:
      // Who has finished needn't know when to save.
      SayIfAllKnow();
      return;
    case WorkerGroup::Change::kFirstSucceeded:
      if (contact_.is_attached()) Send(WorkerSucceeded{.world = group_->world()});
      SayIfAllKnow();
      return;
    case WorkerGroup::Change::kAllSucceeded:
      if (contact_.is_attached()) Send(NodeSucceeded{.world = group_->world()});
      SayIfAllKnow();
      Stop(PlanSweepAfterSuccess(times_));
      return;
    case WorkerGroup::Change::kFailed:
      if (contact_.is_attached()) {
        Send(WorkerFailed{.world = group_->world(), .failure = failure});
      }
      if (group_->is_live()) ShowLine(FailureLine(failure));
      if (failure.hung) Emit(KillWorker{event.round, event.local_rank});
      EndRound(failure.rank, "rank " + std::to_string(failure.rank.value) + " failed");
      Stop(PlanStop(StopCause::kWorkerFailed, times_));
      return;
  }
}

void AgentRules::On(const WorkerReportedStep& event) {
  if (!group_ || group_->world() != event.world) return;
  const bool was_known = group_->lowest_step() >= 0;
  const bool could_save = group_->can_save();
  group_->Stepped(event.local_rank, event.step, event.can_save);
  hang_watch_.Stepped(event.local_rank, event.step, now_);
  // That all workers report steps is news, and so is that they can be asked to save.
  const bool is_news = !was_known && group_->lowest_step() >= 0;
  if (is_news || could_save != group_->can_save()) contact_.HastenHeartbeat(now_);
}

void AgentRules::On(const GroupGone& event) {
  if (!group_ || group_->round() != event.round || group_->is_gone()) return;
  if (!event.unkillable.empty()) {
    ShowLine("gave up on processes of round " + std::to_string(event.round.value) +
             " that can't be killed, as they are stuck in the kernel: " + event.unkillable +
             "; they end when the file server or device that they wait for answers");
  }
  group_->Gone();
  stopped_ = group_->StoppedText();
  if (group_->had_to_kill()) ShowLine(std::exchange(stopped_, {}));
  if (ending_) {
    FinishEnding();
    return;
  }
  // Told to stop, and then told that it was replaced: nobody waits for its StopDone any more.
  if (group_->is_told() && !group_->is_fenced()) {
    StopDone done = group_->ToStopDone();
    if (contact_.is_attached()) {
      Send(done);
    } else {
      owed_stop_done_ = done;
    }
    StartWhatWaits();
    return;
  }
  // A failure or a success stays until the rendezvous has spoken; it may have to be told again.
  bool is_kept = (group_->has_failed() || group_->has_succeeded()) && !group_->is_fenced();
  if (is_kept) return;
  // Fenced; or ended by the guardian behind our back, which is the same to the rest of the job.
  bool has_successor = waiting_start_.has_value();
  if (!group_->is_fenced()) {
    ShowLine(
        "this node stood still for longer than its lease, so its workers were killed; it joins "
        "again");
  }
  EndRound(Rank(-1), "this node's workers are gone");
  StartWhatWaits();
  if (has_successor) return;
  CloseContact();
  contact_.Reopen(now_);
}

// From now on nothing that the round's workers do counts.
void AgentRules::EndRound(Rank culprit, const std::string& reason) {
  if (!group_->TakeAbort()) return;
  Answer(commits_.DropAll(), "the round is over: " + reason);
  agreed_ = {};
  if (HasProcesses()) {
    Emit(AbortCollectives{.world = group_->world(), .culprit = culprit, .reason = reason});
  }
}

void AgentRules::Stop(const StopPlan& plan) {
  if (!group_->TakeStop(plan, now_)) return;
  Emit(StopGroup{.round = group_->round(), .first_signal = plan.first_signal, .grace = plan.grace});
}

// ---- checkpoints ---------------------------------------------------------------------------

void AgentRules::On(const WorkerReportedShard& event) {
  const ShardReport& report = event.report;
  AnswerCommit answer{};
  answer.world = report.world;
  answer.rank = report.rank;
  answer.commit = report.commit;
  if (!IsLive(report.world)) {
    answer.reason = kRoundOfCheckpointIsOver;
  } else if (!commits_.Add(report)) {
    answer.reason = "too many checkpoints are under way";
  } else {
    if (contact_.is_attached()) Send(report);
    if (report.rank == Rank(0)) return;  // waits for the grant
    answer.is_granted = true;
  }
  Emit(std::move(answer));
}

void AgentRules::On(const WorkerCommitted& event) {
  const CommitDone& report = event.commit;
  if (IsLive(report.world) && commits_.Add(report)) {
    // Published already, so it counts even if a rendezvous that restarts never hears of this
    // message.
    last_commit_ = report.commit;
    NoteSaved(report.commit);
    if (contact_.is_attached()) Send(report);
    return;
  }
  AnswerCommit answer{};
  answer.world = report.world;
  answer.commit = report.commit;
  answer.reason = kRoundOfCheckpointIsOver;
  Emit(std::move(answer));
}

void AgentRules::Answer(const std::vector<CommitRequests::Request>& requests,
                        const std::string& refusal) {
  for (const CommitRequests::Request& request : requests) {
    Emit(AnswerCommit{.world = group_->world(),
                      .rank = request.rank,
                      .commit = request.commit,
                      .is_granted = refusal.empty(),
                      .reason = refusal});
  }
}

void AgentRules::Said(const CommitGranted& message) {
  if (!group_ || group_->world() != message.world) return;
  Answer(commits_.Granted(message.commit), "");
}

void AgentRules::Said(const CommitRefused& message) {
  if (!group_ || group_->world() != message.world) return;
  Answer(commits_.Refused(message.commit), message.reason.empty() ? "refused" : message.reason);
}

void AgentRules::Said(const CommitNoted& message) {
  last_commit_ = message.commit;
  if (!group_ || group_->world() != message.world) return;
  NoteSaved(message.commit);
  Answer(commits_.Noted(message.commit), "");
}

}  // namespace muster::agent
