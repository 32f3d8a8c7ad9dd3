#include "agent/core/worker_group.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "agent/core/own_verdict.h"
#include "base/signal_name.h"

namespace muster::agent {

WorkerGroup::WorkerGroup(StartRound place, int worker_count)
    : place_(std::move(place)),
      states_(static_cast<size_t>(worker_count), State::kStarting),
      steps_(static_cast<size_t>(worker_count), -1),
      can_save_(static_cast<size_t>(worker_count), false),
      is_sdk_(states_.size(), false) {}

void WorkerGroup::Started(LocalRank local_rank, int64_t /*pid*/) {
  auto index = static_cast<size_t>(local_rank.value);
  if (index < states_.size() && states_[index] == State::kStarting) {
    states_[index] = State::kRunning;
  }
}

void WorkerGroup::Stepped(LocalRank local_rank, int64_t step, bool can_save) {
  auto index = static_cast<size_t>(local_rank.value);
  if (index >= steps_.size() || step < 0) return;
  steps_[index] = step;
  can_save_[index] = can_save;
}

int64_t WorkerGroup::last_step(LocalRank local_rank) const {
  auto index = static_cast<size_t>(local_rank.value);
  return index < steps_.size() ? steps_[index] : -1;
}

int64_t WorkerGroup::lowest_step() const {
  return steps_.empty() ? -1 : *std::min_element(steps_.begin(), steps_.end());
}

bool WorkerGroup::can_save() const {
  return lowest_step() >= 0 &&
         std::all_of(can_save_.begin(), can_save_.end(), [](bool can) { return can; });
}

bool WorkerGroup::is_running(LocalRank local_rank) const {
  auto index = static_cast<size_t>(local_rank.value);
  return index < states_.size() &&
         (states_[index] == State::kStarting || states_[index] == State::kRunning);
}

void WorkerGroup::SaidHello(LocalRank local_rank) {
  auto index = static_cast<size_t>(local_rank.value);
  if (index >= is_sdk_.size() || is_sdk_[index]) return;
  is_sdk_[index] = true;
  ++sdk_count_;
}

bool WorkerGroup::IsOurDoing(const WorkerExit& exit, Instant now) const {
  if (exit.signal == SIGKILL) return now >= kill_at_;
  return stop_ && exit.signal != 0 && exit.signal == first_signal_;
}

WorkerGroup::Change WorkerGroup::Ended(LocalRank local_rank, const WorkerFailure& failure,
                                       Instant now) {
  auto index = static_cast<size_t>(local_rank.value);
  if (index >= states_.size()) return Change::kNothing;
  State& state = states_[index];
  if (state != State::kStarting && state != State::kRunning) return Change::kNothing;

  bool is_success = failure.exit.Succeeded() && !failure.failed_to_start;
  const Instant ended_at = now - failure.age;
  if (is_over_) {
    // The news of it may come after the news of another failure, which perhaps followed it.
    bool is_unasked = ended_at < stopped_at_;
    bool is_follower = has_failed() && !is_told_ && !IsOurDoing(failure.exit, ended_at);
    bool is_failure = !is_success && !is_fenced_ && (is_unasked || is_follower);
    state = is_failure ? State::kFailed : State::kStopped;
    if (!is_failure) {
      CountStopped(failure.exit, ended_at);
      return Change::kNothing;
    }
  } else {
    state = is_success ? State::kSucceeded : State::kFailed;
  }
  if (state == State::kFailed) {
    failures_.push_back({.failure = failure, .noticed = now});
    return Change::kFailed;
  }
  ++success_count_;
  has_succeeded_ = success_count_ == states_.size();
  if (has_succeeded_) return Change::kAllSucceeded;
  return success_count_ == 1 ? Change::kFirstSucceeded : Change::kNothing;
}

bool WorkerGroup::HasFailed(Rank rank) const {
  return std::ranges::any_of(failures_,
                             [rank](const Failure& f) { return f.failure.rank == rank; });
}

bool WorkerGroup::TakeAbort() {
  is_over_ = true;
  return !std::exchange(is_aborted_, true);
}

bool WorkerGroup::TakeStop(const StopPlan& plan, Instant now) {
  if (is_gone_ || (stop_ && !IsHarder(plan, *stop_))) return false;
  if (!stop_) {
    first_signal_ = plan.first_signal;
    stopped_at_ = now;
  }
  kill_at_ = std::min(kill_at_, now + plan.grace);
  stop_ = plan;
  return true;
}

void WorkerGroup::CountStopped(const WorkerExit& exit, Instant now) {
  if (exit.signal == 0) {
    ++exited_;
  } else if (!IsOurDoing(exit, now)) {
    ++otherwise_;
  } else if (exit.signal == SIGKILL) {
    ++killed_;
  } else {
    ++ended_by_signal_;
  }
}

std::string WorkerGroup::StoppedText() const {
  const int count = ended_by_signal_ + killed_ + exited_ + otherwise_;
  if (count == 0 || !stop_) return "";
  std::string text = std::to_string(count) + (failures_.empty() ? "" : " more") +
                     (count == 1 ? " worker" : " workers") + " of this node " +
                     (count == 1 ? "was" : "were") + " stopped by muster";
  const char* separator = ": ";
  const auto add = [&](int number, const std::string& how) {
    if (number == 0) return;
    text += separator + std::to_string(number) + " " + how;
    separator = ", ";
  };
  add(ended_by_signal_, "ended by " + SignalName(first_signal_));
  add(exited_, "exited when told to");
  add(otherwise_, "ended by another signal");
  add(killed_,
      stop_->grace > Duration(0) ? "killed after " + DurationText(stop_->grace) : "killed");
  return text;
}

std::vector<WorkerFailure> WorkerGroup::Failures(Instant now) const {
  std::vector<WorkerFailure> failures;
  failures.reserve(failures_.size());
  for (const Failure& f : failures_) {
    failures.push_back(f.failure);
    failures.back().age += now - f.noticed;
  }
  return failures;
}

RunningWorld WorkerGroup::ToRunningWorld(std::optional<Commit> last_commit) const {
  return RunningWorld{.world = place_.world,
                      .group_rank = place_.group_rank,
                      .group_world_size = place_.group_world_size,
                      .first_rank = place_.first_rank,
                      .world_size = place_.world_size,
                      .restarts_charged = place_.restarts_charged,
                      .last_commit = std::move(last_commit),
                      .succeeded = has_succeeded_,
                      .worker_succeeded = has_success()};
}

StopDone WorkerGroup::ToStopDone() const {
  StopDone done;
  done.world = place_.world;
  if (!steps_.empty()) done.last_step = *std::max_element(steps_.begin(), steps_.end());
  return done;
}

}  // namespace muster::agent
