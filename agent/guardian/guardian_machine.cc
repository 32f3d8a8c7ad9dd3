#include "agent/guardian/guardian_machine.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

namespace muster::agent::guardian {

std::vector<Effect> GuardianMachine::Step(Instant now, const Event& event) {
  now_ = now;
  effects_.clear();
  if (state_ == State::kEnded) return {};
  std::visit([this](const auto& e) { On(e); }, event);
  return std::exchange(effects_, {});
}

Instant GuardianMachine::NextWakeup() const {
  switch (state_) {
    case State::kRunning:
      return deadline_;
    case State::kStopping:
      return std::min({deadline_, grace_end_, left_notice_at_});
    case State::kKilling:
    case State::kDying:
      return std::min(kill_end_, next_sweep_);
    case State::kIdle:
    case State::kEnded:
      break;
  }
  return Instant::Never();
}

bool GuardianMachine::IsEnding() const {
  return state_ == State::kStopping || state_ == State::kKilling || state_ == State::kDying;
}

bool GuardianMachine::HasRound() const {
  return state_ == State::kRunning || state_ == State::kStopping || state_ == State::kKilling;
}

bool GuardianMachine::AnyWorkerLives() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& entry) { return !entry.second.has_ended; });
}

std::map<LocalRank, GuardianMachine::Worker>::iterator GuardianMachine::FindLive(int64_t pid) {
  return std::find_if(workers_.begin(), workers_.end(), [pid](const auto& entry) {
    return entry.second.pid == pid && !entry.second.has_ended;
  });
}

void GuardianMachine::On(const SpawnAsked& asked) {
  if (state_ == State::kDying) return;
  auto running = workers_.find(asked.local_rank);
  bool may_start = state_ == State::kIdle || (state_ == State::kRunning && round_ == asked.round &&
                                              running == workers_.end());
  if (!may_start) {
    effects_.emplace_back(ReportFailedToStart{asked.round, asked.local_rank, EBUSY});
    return;
  }
  if (state_ == State::kIdle) {
    state_ = State::kRunning;
    round_ = asked.round;
    any_failed_ = false;
  }
  effects_.emplace_back(Fork{asked.round, asked.local_rank});
}

void GuardianMachine::On(const Forked& forked) {
  workers_[forked.local_rank] = Worker{.pid = forked.pid};
}

void GuardianMachine::On(const ForkFailed& failed) {
  if (!HasRound()) return;
  any_failed_ = true;
  effects_.emplace_back(ReportFailedToStart{round_, failed.local_rank, failed.error});
}

void GuardianMachine::On(const ExecDone& done) {
  auto it = FindLive(done.pid);
  if (!HasRound() || it == workers_.end() || it->second.is_reported) return;
  it->second.is_reported = true;
  effects_.emplace_back(ReportStarted{round_, it->first, done.pid});
}

void GuardianMachine::On(const ExecFailed& failed) {
  auto it = FindLive(failed.pid);
  if (!HasRound() || it == workers_.end() || it->second.is_reported) return;
  it->second.is_reported = true;
  it->second.never_started = true;
  any_failed_ = true;
  effects_.emplace_back(ReportFailedToStart{round_, it->first, failed.error});
}

void GuardianMachine::On(const ChildEnded& ended) {
  auto it = FindLive(ended.pid);
  given_up_.erase(ended.pid);
  if (it != workers_.end()) {
    Worker& worker = it->second;
    if (HasRound() && !worker.never_started) {
      // A kill can come between fork and exec.
      if (!worker.is_reported) effects_.emplace_back(ReportStarted{round_, it->first, ended.pid});
      effects_.emplace_back(ReportExited{round_, it->first, ended.pid, ended.exit});
    }
    worker.has_ended = true;
    worker.has_failed = state_ == State::kRunning && !ended.exit.Succeeded();
    any_failed_ = any_failed_ || !ended.exit.Succeeded();
  }
  if (IsEnding() && !AnyWorkerLives()) effects_.emplace_back(LookForLeftOvers{});
}

void GuardianMachine::On(const StopAsked& asked) {
  if (state_ == State::kDying) return;
  if (state_ == State::kIdle || asked.round != round_) {
    effects_.emplace_back(ReportGone{asked.round, {}});
    return;
  }
  if (state_ == State::kRunning) {
    state_ = State::kStopping;
    first_signal_ = asked.first_signal;
    left_overs_signalled_.clear();
    left_notice_at_ = Instant::Never();
    left_was_told_ = false;
    grace_end_ = now_ + asked.grace;
    if (asked.grace > Duration::zero()) {
      SignalLiveGroups(first_signal_);
      for (auto& [local_rank, worker] : workers_) worker.was_signalled = !worker.has_ended;
    }
  }
  if (state_ != State::kStopping) return;
  grace_end_ = std::min(grace_end_, now_ + asked.grace);
  if (grace_end_ <= now_) {
    EnterKilling(State::kKilling, kKillPatience);
  } else if (!AnyWorkerLives()) {
    effects_.emplace_back(LookForLeftOvers{});
  }
}

void GuardianMachine::On(const SignalAsked& asked) {
  if (state_ != State::kRunning && state_ != State::kStopping) return;
  if (!asked.local_rank) return SignalLiveGroups(asked.signal);
  auto worker = workers_.find(*asked.local_rank);
  if (worker == workers_.end() || worker->second.has_ended) return;
  effects_.emplace_back(SignalGroup{worker->second.pid, asked.signal});
}

void GuardianMachine::On(const DeadlineRenewed& renewed) { deadline_ = renewed.deadline; }

void GuardianMachine::On(const AgentGone& /*gone*/) { Die(); }

void GuardianMachine::On(const LeftSeen& seen) {
  if (!IsEnding()) return;
  left_.clear();
  for (int64_t pid : seen.pids) {
    if (!given_up_.contains(pid)) left_.push_back(pid);
  }
  if (left_.empty() && !AnyWorkerLives()) {
    BecomeGone({});
    return;
  }
  if (state_ == State::kStopping) {
    if (AnyWorkerLives() || SpareLeftOvers(seen)) return;
    EnterKilling(State::kKilling, kKillPatience);
    effects_.clear();  // The look that this asks for was just taken.
  }
  if (!left_.empty()) effects_.emplace_back(SignalProcesses{left_, SIGKILL});
  SweepLater();
}

void GuardianMachine::On(const TimePassed& /*passed*/) {
  // The agent is frozen, or out of contact: its workers must not live on, but once it is back it
  // may want new ones.
  bool is_late = state_ == State::kRunning || state_ == State::kStopping;
  if (is_late && now_ >= deadline_) {
    deadline_ = Instant::Never();
    any_failed_ = true;
    EnterKilling(State::kKilling, kKillPatience);
    return;
  }
  if (state_ == State::kStopping && now_ >= grace_end_) {
    EnterKilling(State::kKilling, kKillPatience);
  } else if (state_ == State::kStopping && now_ >= left_notice_at_) {
    left_notice_at_ = Instant::Never();
    left_was_told_ = true;
    effects_.emplace_back(ReportLeft{round_, left_, grace_end_ - now_});
  } else if (state_ == State::kKilling || state_ == State::kDying) {
    if (now_ >= kill_end_) {
      BecomeGone(left_);
    } else if (now_ >= next_sweep_) {
      SweepLater();
      effects_.emplace_back(LookForLeftOvers{});
    }
  }
}

void GuardianMachine::SignalLiveGroups(int signal) {
  for (const auto& [local_rank, worker] : workers_) {
    if (!worker.has_ended) effects_.emplace_back(SignalGroup{worker.pid, signal});
  }
}

const GuardianMachine::Worker* GuardianMachine::WorkerOfSession(int64_t session) const {
  for (const auto& [local_rank, worker] : workers_) {
    if (worker.pid == session) return &worker;
  }
  return nullptr;
}

bool GuardianMachine::SpareLeftOvers(const LeftSeen& seen) {
  std::vector<int64_t> doomed;
  std::vector<int64_t> unaware;
  std::vector<int64_t> spared;
  for (int64_t pid : left_) {
    auto session = seen.sessions.find(pid);
    const Worker* worker =
        session == seen.sessions.end() ? nullptr : WorkerOfSession(session->second);
    if (worker == nullptr ? any_failed_ : worker->has_failed) {
      doomed.push_back(pid);
      continue;
    }
    spared.push_back(pid);
    const bool knows = worker != nullptr && worker->was_signalled;
    if (left_overs_signalled_.insert(pid).second && !knows) unaware.push_back(pid);
  }
  if (spared.empty()) return false;
  if (!doomed.empty()) effects_.emplace_back(SignalProcesses{doomed, SIGKILL});
  if (!unaware.empty()) effects_.emplace_back(SignalProcesses{unaware, first_signal_});
  if (left_notice_at_.IsNever() && !left_was_told_) left_notice_at_ = now_ + kLeftNoticeAfter;
  return true;
}

void GuardianMachine::EnterKilling(State state, Duration patience) {
  state_ = state;
  kill_end_ = now_ + patience;
  sweep_pause_ = kFirstSweepPause;
  next_sweep_ = now_ + sweep_pause_;
  SignalLiveGroups(SIGKILL);
  if (!AnyWorkerLives()) effects_.emplace_back(LookForLeftOvers{});
}

void GuardianMachine::SweepLater() {
  next_sweep_ = now_ + sweep_pause_;
  sweep_pause_ = std::min(2 * sweep_pause_, kMaxSweepPause);
}

void GuardianMachine::Die() {
  if (state_ == State::kDying) return;
  if (state_ == State::kIdle) {
    state_ = State::kEnded;
    effects_.emplace_back(Exit{});
    return;
  }
  EnterKilling(State::kDying, kDyingPatience);
}

void GuardianMachine::BecomeGone(std::vector<int64_t> unkillable) {
  if (state_ == State::kDying) {
    state_ = State::kEnded;
    effects_.emplace_back(Exit{});
    return;
  }
  given_up_.insert(unkillable.begin(), unkillable.end());
  state_ = State::kIdle;
  workers_.clear();
  left_.clear();
  effects_.emplace_back(ReportGone{round_, std::move(unkillable)});
}

}  // namespace muster::agent::guardian
