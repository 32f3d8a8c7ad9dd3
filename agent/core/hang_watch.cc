#include "agent/core/hang_watch.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include "agent/core/hang_events.h"

namespace muster::agent {
namespace {

// Of pings within the timeout.
constexpr int kPingsInTimeout = 4;
// When the first is late, those that have been quiet for this part of the timeout stand still with
// it: ranks in lock step report within moments of each other, not in the same one.
constexpr int kQuietPart = 2;
// What workers that wait leave other nodes' agents: this part of the timeout, since ranks in lock
// step report within moments of each other, but never less than such an agent takes for its look
// at the one it blames, and to be heard.
constexpr int kGracePart = 2;
constexpr Duration kLeastGrace = kHungLookPatience + std::chrono::seconds(2);
constexpr size_t kMostNamed = 8;

std::string SecondsText(Duration duration) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f s",
                std::chrono::duration<double>(duration).count());
  return text.data();
}

// As a user writes it.
std::string FlagText(Duration timeout) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), " (--hang-timeout=%g)",
                std::chrono::duration<double>(timeout).count());
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

// Whom to blame first of those that stand still.
int Order(const Activity& activity) {
  switch (activity.kind) {
    case Activity::Kind::kOwnCode:
      return 0;
    case Activity::Kind::kUnknown:
      return 1;
    case Activity::Kind::kWaits:
      return 2;
  }
  return 1;
}

bool Waits(const Activity& activity) { return activity.kind == Activity::Kind::kWaits; }

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

void HangWatch::Answered(LocalRank local_rank, const std::optional<Activity>& activity,
                         Instant now) {
  auto index = static_cast<size_t>(local_rank.value);
  if (index >= workers_.size()) return;
  Worker& worker = workers_[index];
  worker.has_answered = true;
  worker.answered_at = now;
  if (!activity) return;
  worker.activity = *activity;
  // Between two collectives every rank is in its own code for a moment: that says nothing.
  bool is_passing =
      activity->kind == Activity::Kind::kOwnCode && activity->lasted < timeout_ / kPingsInTimeout;
  if (is_passing) worker.activity.kind = Activity::Kind::kUnknown;
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

Duration HangWatch::StepLimit(const Worker& worker) const {
  if (!round_.has_other_nodes) return timeout_;
  Duration limit = timeout_ + timeout_ / kPingsInTimeout;
  return Waits(worker.activity) ? limit + std::max(timeout_ / kGracePart, kLeastGrace) : limit;
}

bool HangWatch::IsDue(Instant now) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return IsSilent(worker, now, timeout_) || StandsStill(worker, now, StepLimit(worker));
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

// Who waits for nobody rather than who waits; of those, the one that is furthest behind; of
// several, the one that got there first.
size_t HangWatch::FindStraggler(Instant now) const {
  auto key = [](const Worker& worker) {
    return std::tuple(Order(worker.activity), worker.step, worker.stepped_at);
  };
  size_t found = workers_.size();
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!StandsStill(workers_[i], now, timeout_ / kQuietPart)) continue;
    if (found == workers_.size() || key(workers_[i]) < key(workers_[found])) found = i;
  }
  return found;
}

std::string HangWatch::EvidenceOfSilence(const Worker& worker, Instant now) const {
  std::string text = "its process gave no sign of life for " +
                     SecondsText(now - worker.answered_at) + FlagText(timeout_) +
                     ": it is stopped, or can't run";
  if (worker.step >= 0) text += "; its last step was " + std::to_string(worker.step);
  return text;
}

std::string HangWatch::EvidenceOfNoStep(size_t blamed, Instant now) const {
  const Worker& worker = workers_[blamed];
  std::vector<int> waiting;
  std::vector<int> equal;
  std::vector<int> ahead;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Worker& other = workers_[i];
    if (i == blamed || !StandsStill(other, now, timeout_ / kQuietPart)) continue;
    std::vector<int>& those = Waits(other.activity)      ? waiting
                              : other.step > worker.step ? ahead
                                                         : equal;
    those.push_back(round_.first_rank.value + static_cast<int>(i));
  }
  std::string text = "it completed no step for " + SecondsText(now - worker.stepped_at) +
                     " after step " + std::to_string(worker.step) + FlagText(timeout_);
  if (Waits(worker.activity)) {
    text += "; it waits for other ranks";
    if (!waiting.empty())
      text += (waiting.size() == 1 ? ", as does " : ", as do ") + RanksText(waiting);
    if (round_.has_other_nodes) text += ", and no other node has named one that doesn't";
    return text + ": they may wait for each other, and which of them is the cause can't be told";
  }
  bool is_in_own_code = worker.activity.kind == Activity::Kind::kOwnCode;
  if (is_in_own_code) {
    text += "; when last asked it had been in its own code, in no collective of the SDK's, for " +
            SecondsText(worker.activity.lasted);
  }
  if (!ahead.empty())
    text += "; " + RanksText(ahead) +
            (ahead.size() == 1 ? " got further and stands" : " got further and stand") +
            " still as well";
  if (!waiting.empty()) {
    text += "; " + RanksText(waiting) + (waiting.size() == 1 ? " waits" : " wait") + " for others";
  }
  if (!equal.empty()) {
    text += "; so did " + RanksText(equal) + ": which of them hangs can't be told";
  }
  if (round_.has_other_nodes && !is_in_own_code) text += "; it may wait for a rank of another node";
  return text;
}

std::optional<HangWatch::Finding> HangWatch::Check(Instant now) {
  if (timeout_ <= Duration(0)) return std::nullopt;
  ForgetOurAbsence(now);
  if (found_ || !IsDue(now)) return std::nullopt;
  Finding finding;
  size_t blamed = FindSilent(now);
  if (blamed < workers_.size()) {
    finding.evidence = EvidenceOfSilence(workers_[blamed], now);
  } else {
    blamed = FindStraggler(now);
    finding.only_waited = Waits(workers_[blamed].activity);
    finding.evidence = EvidenceOfNoStep(blamed, now);
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
    if (worker.step >= 0) next = std::min(next, worker.stepped_at + StepLimit(worker));
    if (worker.has_answered) next = std::min(next, worker.answered_at + timeout_);
  }
  return next;
}

}  // namespace muster::agent
