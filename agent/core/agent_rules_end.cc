#include <csignal>
#include <utility>

#include "agent/core/agent_rules.h"
#include "agent/core/own_verdict.h"

namespace muster::agent {

// ---- the end -------------------------------------------------------------------------------

void AgentRules::Said(const JobEnded& message) {
  if (!contact_.was_ever_attached() && !ending_) {
    // Told before anything else: this node wasn't part of it, and must not look as if it had been.
    ShowLine("job " + options_.attach.terms.run_id +
             (message.verdict.succeeded ? " had already succeeded (exit code "
                                        : " had already failed (exit code ") +
             std::to_string(message.verdict.exit_code) +
             ") when this node came, which ends with the same; to run it again, give another "
             "--rdzv-id");
  }
  EndWith({.verdict = message.verdict, .is_job_over = true},
          PlanStop(StopCause::kJobEnding, times_));
}

void AgentRules::On(const StopRequested& event) {
  const bool is_notice = !event.notice.empty();
  // Schedulers repeat notices, and let SIGTERM follow: that is the same wish.
  if (is_notice && (departure_ || ending_)) return;
  if (!is_notice) ++user_stops_;
  const bool is_announced = departure_ && departure_->is_by_notice;
  if (is_announced && !ending_ && user_stops_ == 1 && event.signal == SIGTERM) return;
  StopPlan plan = PlanUserStop(event.signal, user_stops_ > 1, times_);
  if (ending_) {
    if (HasProcesses()) Stop(plan);
    return;
  }
  if (!departure_ && CanDepart(event)) return Depart(event);
  Verdict verdict = VerdictOfStop(event.signal, event.notice);
  if (HasProcesses()) {
    ShowLine(verdict.reason + ": stopping the workers" + WhatFollowsStop());
  }
  EndWith({.verdict = std::move(verdict), .takes_leave = true}, plan);
}

void AgentRules::On(const GuardianLost& event) {
  if (group_) {
    group_->Gone();
    EndRound(Rank(-1), "the guardian of this node was lost");
  }
  if (!ending_) {
    Verdict verdict = VerdictOfLostGuardian(options_.attach.node_name, event.why);
    ending_ = Ending{.verdict = std::move(verdict), .takes_leave = true, .is_lost = true};
  }
  FinishEnding();
}

void AgentRules::EndWith(Ending ending, const StopPlan& plan) {
  if (!ending_) {
    ending_ = std::move(ending);
    // What this node decides by itself knows no more of the job than it has heard.
    if (!ending_->is_job_over) ending_->verdict.restarts_charged = restarts_charged_;
  } else if (ending.is_job_over) {
    ending_->is_job_over = true;
  }
  waiting_start_.reset();
  if (!HasProcesses()) {
    if (group_) EndRound(Rank(-1), ending_->verdict.reason);
    FinishEnding();
    return;
  }
  // Workers that a user stops may still want to agree on a last checkpoint; all others must not
  // wait.
  if (ending_->takes_leave) {
    group_->MakeOver();
  } else if (!group_->has_succeeded()) {
    EndRound(Rank(-1),
             ending_->verdict.reason.empty() ? "the job is over" : ending_->verdict.reason);
  }
  Stop(plan);
  if (ending_->is_job_over && next_renewal_.IsNever()) next_renewal_ = now_;
  // Without contact there is nobody to take leave of.
  bool can_say_goodbye = contact_.is_attached() || contact_.state() == Contact::State::kAttaching;
  if (!can_say_goodbye) CloseContact();
}

void AgentRules::FinishEnding() {
  if (ending_->takes_leave && contact_.is_attached()) {
    Send(Leave{.reason = ending_->verdict.reason, .is_lost = ending_->is_lost});
  }
  CloseContact();
  if (!ending_->verdict.succeeded && !stopped_.empty()) ShowLine(stopped_);
  has_ended_ = true;
  Emit(End{.verdict = ending_->verdict});
}

}  // namespace muster::agent
