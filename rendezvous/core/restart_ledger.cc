#include "rendezvous/core/restart_ledger.h"

#include <algorithm>

#include "base/planted_fault.h"

namespace muster::rendezvous {
namespace {

std::string Seconds(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace

RestartLedger::Answer RestartLedger::Charge(const JobTerms& terms, const RoundEnd& end) {
  NoteUptime(terms, end);
  if (!has_lived_ && !end.is_recovered) ++early_failures_;
  NoteStep(end);
  while (!recent_.empty() && recent_.front() + kHour <= end.at) recent_.pop_front();
  if (std::string reason = WhyNot(terms); !reason.empty()) return {false, std::move(reason)};
  charged_ += MUSTER_PLANTED(kBudgetChargedTwice, 2, 1);
  // Only as many as the question needs.
  recent_.push_back(end.at);
  if (recent_.size() > static_cast<size_t>(std::max(terms.max_restarts_per_hour, 1))) {
    recent_.pop_front();
  }
  return {.may_restart = true, .reason = ""};
}

void RestartLedger::Pass(const JobTerms& terms, const RoundEnd& end) {
  NoteUptime(terms, end);
  // Something else than the program ended it, so it says nothing about those before.
  early_failures_ = 0;
  // Whoever came further than where the rounds failed is past the fault; less says nothing.
  if (stuck_ && end.last_step > stuck_->step) stuck_.reset();
}

void RestartLedger::NoteUptime(const JobTerms& terms, const RoundEnd& end) {
  if (end.uptime >= terms.min_uptime || end.last_step >= 0) has_lived_ = true;
}

void RestartLedger::NoteStep(const RoundEnd& end) {
  if (end.last_step < 0) {
    stuck_.reset();
    return;
  }
  const bool is_same =
      stuck_ && MUSTER_PLANTED(kProgressIsStuck, true, stuck_->step == end.last_step);
  if (!is_same) {
    stuck_ = Stuck{end.last_step, 0, end.culprit};
    return;
  }
  ++stuck_->restarts;
  if (stuck_->culprit != end.culprit) stuck_->culprit.reset();
}

// What says most about the cause comes first: a job that is stuck needs no larger budget.
std::string RestartLedger::WhyNot(const JobTerms& terms) const {
  if (terms.max_stuck_restarts > 0 && stuck_ && stuck_->restarts >= terms.max_stuck_restarts) {
    const std::string step = " at step " + std::to_string(stuck_->step);
    const std::string rounds =
        "each of the last " + std::to_string(stuck_->restarts + 1) + " rounds";
    return (stuck_->culprit ? "rank " + std::to_string(stuck_->culprit->value) + " failed" + step +
                                  " in " + rounds
                            : rounds + " ended" + step) +
           " (--max-stuck-restarts=" + std::to_string(terms.max_stuck_restarts) +
           "), so it was not started again; find what fails after that step";
  }
  if (terms.max_early_failures > 0 && !has_lived_ && early_failures_ >= terms.max_early_failures) {
    return "no round has lived " + Seconds(terms.min_uptime) + " (--min-uptime) and " +
           std::to_string(early_failures_) +
           " in a row failed (--max-early-failures=" + std::to_string(terms.max_early_failures) +
           "), so it was not started again; see that the program can run at all";
  }
  if (charged_ >= terms.max_restarts) {
    if (terms.max_restarts == 0) return "--max-restarts is 0, so it was not restarted";
    if (terms.max_restarts == 1) return "the one restart of --max-restarts=1 is used up";
    return "all " + std::to_string(terms.max_restarts) + " restarts of --max-restarts are used up";
  }
  const bool is_often = terms.max_restarts_per_hour > 0 &&
                        recent_.size() >= static_cast<size_t>(terms.max_restarts_per_hour);
  if (MUSTER_PLANTED(kHourForgotten, false, is_often)) {
    return "it was restarted " +
           (recent_.size() == 1 ? "once" : std::to_string(recent_.size()) + " times") +
           " within the last hour, which is all that --max-restarts-per-hour=" +
           std::to_string(terms.max_restarts_per_hour) + " allows; mend the cause, or allow more";
  }
  return "";
}

void RestartLedger::LearnCharged(int charged) { charged_ = std::max(charged_, charged); }

void RestartLedger::Committed(int64_t step) {
  // A round that saves again what it was resumed from has made no progress.
  if (MUSTER_PLANTED(kProgressIsStuck, true, step <= committed_step_)) return;
  committed_step_ = step;
  stuck_.reset();
}

}  // namespace muster::rendezvous
