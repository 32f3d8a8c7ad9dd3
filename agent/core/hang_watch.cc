#include "agent/core/hang_watch.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace muster::agent {
namespace {

// Of pings within the timeout.
constexpr int kPingsInTimeout = 4;
// When the first is late, those that have been quiet for this part of the timeout stand still with
// it: ranks in lock step report within moments of each other, not in the same one.
constexpr int kQuietPart = 2;
constexpr size_t kMostNamed = 8;

std::string SecondsText(Duration duration) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f s",
                std::chrono::duration<double>(duration).count());
  return text.data();
}

std::string RanksText(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kMostNamed; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kMostNamed) {
    text += " and " + std::to_string(ranks.size() - kMostNamed) + " more";
  }
  return text;
}

}  // namespace

void HangWatch::RoundStarts(const Round& round, Instant now) {
  round_ = round;
  workers_.assign(static_cast<size_t>(round.worker_count), Worker{});
  found_.reset();
  last_look_ = now;
  next_ping_ = timeout_ > Duration(0) ? now + timeout_ / kPingsInTimeout : Instant::Never();
}

void HangWatch::Stepped(LocalRank local_rank, int64_t step, Instant now) {
  auto index = static_cast<size_t>(local_rank.value);
  if (index >= workers_.size()) return;
  workers_[index].step = step;
  workers_[index].stepped_at = now;
}

void HangWatch::Answered(LocalRank local_rank, Instant now) {
  auto index = static_cast<size_t>(local_rank.value);
  if (index >= workers_.size()) return;
  workers_[index].has_answered = true;
  workers_[index].answered_at = now;
}

void HangWatch::Left(LocalRank local_rank) {
  auto index = static_cast<size_t>(local_rank.value);
  if (index < workers_.size()) workers_[index].has_left = true;
  if (found_ == local_rank) found_.reset();
}

bool HangWatch::TakePing(Instant now) {
  if (now < next_ping_) return false;
  next_ping_ = now + timeout_ / kPingsInTimeout;
  return true;
}

bool HangWatch::IsSilent(const Worker& worker, Instant now, Duration limit) const {
  return !worker.has_left && worker.has_answered && now - worker.answered_at >= limit;
}

bool HangWatch::StandsStill(const Worker& worker, Instant now, Duration limit) const {
  return !worker.has_left && worker.step >= 0 && now - worker.stepped_at >= limit;
}

Duration HangWatch::StepLimit() const {
  return round_.has_other_nodes ? timeout_ + timeout_ / kPingsInTimeout : timeout_;
}

bool HangWatch::IsDue(Instant now) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return IsSilent(worker, now, timeout_) || StandsStill(worker, now, StepLimit());
  });
}

void HangWatch::ForgetOurAbsence(Instant now) {
  // We look at every ping at least.
  Duration gap = now - last_look_;
  last_look_ = now;
  if (gap <= timeout_ / kQuietPart) return;
  for (Worker& worker : workers_) {
    worker.stepped_at = std::min(worker.stepped_at + gap, now);
    worker.answered_at = std::min(worker.answered_at + gap, now);
  }
}

// The silent one that was heard last the longest ago; workers_.size() if none is.
size_t HangWatch::FindSilent(Instant now) const {
  size_t found = workers_.size();
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!IsSilent(workers_[i], now, timeout_ / kQuietPart)) continue;
    bool is_first = found == workers_.size();
    if (is_first || workers_[i].answered_at < workers_[found].answered_at) found = i;
  }
  return found;
}

// The one that is furthest behind; of several, the one that got there first.
size_t HangWatch::FindStraggler(Instant now) const {
  size_t found = workers_.size();
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    if (!StandsStill(worker, now, timeout_ / kQuietPart)) continue;
    bool is_first = found == workers_.size();
    if (is_first || worker.step < workers_[found].step ||
        (worker.step == workers_[found].step && worker.stepped_at < workers_[found].stepped_at)) {
      found = i;
    }
  }
  return found;
}

std::string HangWatch::OthersText(size_t blamed, Instant now) const {
  std::vector<int> equal;
  std::vector<int> ahead;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (i == blamed || !StandsStill(workers_[i], now, timeout_ / kQuietPart)) continue;
    int rank = round_.first_rank.value + static_cast<int>(i);
    (workers_[i].step > workers_[blamed].step ? ahead : equal).push_back(rank);
  }
  std::string text;
  if (!ahead.empty()) text += "; " + RanksText(ahead) + " got further and stand still as well";
  if (!equal.empty()) {
    text += "; so did " + RanksText(equal) + ": which of them hangs can't be told";
  }
  if (round_.has_other_nodes) text += "; it may wait for a rank of another node";
  return text;
}

std::optional<HangWatch::Finding> HangWatch::Check(Instant now) {
  if (timeout_ <= Duration(0)) return std::nullopt;
  ForgetOurAbsence(now);
  if (found_ || !IsDue(now)) return std::nullopt;
  Finding finding;
  size_t blamed = FindSilent(now);
  if (blamed < workers_.size()) {
    const Worker& worker = workers_[blamed];
    finding.evidence = "its process gave no sign of life for " +
                       SecondsText(now - worker.answered_at) + ": it is stopped, or can't run";
    if (worker.step >= 0) finding.evidence += "; its last step was " + std::to_string(worker.step);
  } else {
    blamed = FindStraggler(now);
    const Worker& worker = workers_[blamed];
    finding.evidence = "it completed no step for " + SecondsText(now - worker.stepped_at) +
                       " after step " + std::to_string(worker.step) + OthersText(blamed, now);
  }
  finding.local_rank = LocalRank(static_cast<int32_t>(blamed));
  finding.last_step = workers_[blamed].step;
  found_ = finding.local_rank;
  return finding;
}

Instant HangWatch::NextWakeup() const {
  Instant next = next_ping_;
  if (found_ || next.IsNever()) return next;
  for (const Worker& worker : workers_) {
    if (worker.has_left) continue;
    if (worker.step >= 0) next = std::min(next, worker.stepped_at + StepLimit());
    if (worker.has_answered) next = std::min(next, worker.answered_at + timeout_);
  }
  return next;
}

}  // namespace muster::agent
