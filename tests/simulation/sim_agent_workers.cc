// The guardian of a simulated agent and its workers: how they start, end and are swept.
#include <csignal>
#include <utility>

#include "tests/simulation/invariants.h"
#include "tests/simulation/sim_agent.h"
#include "tests/simulation/workload.h"

namespace muster::simulation {

using std::chrono::microseconds;
using std::chrono::milliseconds;

void SimAgent::Perform(agent::SpawnGroup& effect) {
  parts_.invariants.CheckSpawn(options_.index, effect.place);
  if (!guardian_is_alive_) return;
  place_ = effect.place;
  ++group_number_;
  is_stopping_ = false;
  is_sweeping_ = false;
  workers_.assign(static_cast<size_t>(node().worker_count), Worker{});
  live().world = parts_.worlds.Find(effect.place.world);
  live().count = node().worker_count;
  WorldMember* member = parts_.worlds.FindMember(effect.place.world, options_.index);
  if (member != nullptr) member->has_spawned = true;
  for (int i = 0; i < node().worker_count; ++i) {
    parts_.queue.After(parts_.random.Between(microseconds(300), milliseconds(3)),
                       Act::kWorkerStarts, options_.index, GroupCode(i));
  }
}

void SimAgent::StartWorker(int local_rank) {
  Worker& worker = workers_[local_rank];
  if (worker.state != WorkerState::kStarting || !worker.dies_at.IsNever()) return;
  if (std::exchange(next_cannot_start_, false)) {
    worker.cannot_start = true;
    worker.is_genuine = true;
    DieAt(local_rank, Duration(0), {.code = 127});
    return;
  }
  worker.state = WorkerState::kRunning;
  Take(agent::WorkerStarted{.round = place_->world.round,
                            .local_rank = LocalRank(local_rank),
                            .pid = 1000 + GroupCode(local_rank)});
  if (node().uses_sdk) {
    Take(agent::WorkerSaidHello{.round = place_->world.round, .local_rank = LocalRank(local_rank)});
  }
  parts_.workload.WorkerStarted(live().world);
}

void SimAgent::Perform(agent::StopGroup& effect) {
  if (parts_.trace.is_on()) {
    Tell("stops round " + std::to_string(effect.round.value) + " with grace " +
         std::to_string(effect.grace / milliseconds(1)) + " ms");
  }
  if (!guardian_is_alive_) return;
  if (!place_ || place_->world.round != effect.round) {
    Take(agent::GroupGone{.round = effect.round});
    return;
  }
  is_stopping_ = true;
  if (live().count > 0) parts_.worlds[live().world].is_broken = true;
  for (int i = 0; i < static_cast<int>(workers_.size()); ++i) {
    Duration takes =
        parts_.random.Between(parts_.options.term_takes / 2, parts_.options.term_takes);
    if (takes < effect.grace) {
      bool is_zero = parts_.options.exits_zero_on_term;
      DieAt(i, takes, {.signal = is_zero ? 0 : effect.first_signal});
    } else {
      Duration dying = parts_.random.Between(microseconds(200), milliseconds(2));
      DieAt(i, effect.grace + dying, {.signal = SIGKILL});
    }
  }
  SweepIfEmpty();
}

void SimAgent::KillWorkers(Duration within) {
  is_stopping_ = true;
  for (int i = 0; i < static_cast<int>(workers_.size()); ++i) {
    DieAt(i, parts_.random.Between(within / 4, within), {.signal = SIGKILL});
  }
}

// The earliest death counts.
void SimAgent::DieAt(int local_rank, Duration after, WorkerExit exit) {
  Worker& worker = workers_[local_rank];
  Instant at = parts_.queue.now() + after;
  if (worker.state == WorkerState::kEnded || at >= worker.dies_at) return;
  worker.dies_at = at;
  worker.exit = exit;
  parts_.queue.At(at, Act::kWorkerDies, options_.index, GroupCode(local_rank));
}

bool SimAgent::WorkerRuns(LocalRank local_rank) const {
  auto index = static_cast<size_t>(local_rank.value);
  return index < workers_.size() && workers_[index].state == WorkerState::kRunning;
}

bool SimAgent::EndWorker(uint32_t target, WorkerExit exit, bool is_genuine) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    auto local_rank = static_cast<int>((target + i) % workers_.size());
    Worker& worker = workers_[local_rank];
    if (worker.state != WorkerState::kRunning || is_stopping_) continue;
    worker.is_genuine = is_genuine;
    DieAt(local_rank, Duration(0), exit);
    return true;
  }
  return false;
}

void SimAgent::FinishWorker(LocalRank local_rank, Duration after) {
  if (WorkerRuns(local_rank)) DieAt(local_rank.value, after, {});
}

void SimAgent::FailWorkerSoon(LocalRank local_rank, Duration after) {
  if (WorkerRuns(local_rank)) DieAt(local_rank.value, after, {.code = 1});
}

void SimAgent::WorkerDied(int local_rank) {
  Worker& worker = workers_[local_rank];
  if (worker.state == WorkerState::kEnded || parts_.queue.now() < worker.dies_at) return;
  worker.state = WorkerState::kEnded;
  --live().count;
  WorkerFailure failure;
  failure.rank = Rank(place_->first_rank.value + local_rank);
  failure.local_rank = LocalRank(local_rank);
  failure.node_name = node().name;
  failure.pid = 1000 + GroupCode(local_rank);
  failure.exit = worker.exit;
  failure.failed_to_start = worker.cannot_start;
  // Judged before the agent hears of it: it sweeps the group when all have exited 0.
  bool is_success = worker.exit.Succeeded() && !is_stopping_;
  parts_.workload.WorkerEnded(live().world, failure, is_success, worker.is_genuine);
  if (guardian_is_alive_) {
    Take(agent::WorkerEnded{
        .round = place_->world.round, .local_rank = LocalRank(local_rank), .failure = failure});
  }
  SweepIfEmpty();
}

void SimAgent::SweepIfEmpty() {
  if (!is_stopping_ || is_sweeping_ || live().count > 0) return;
  is_sweeping_ = true;
  parts_.queue.After(parts_.random.Between(microseconds(200), microseconds(1500)), Act::kGroupSwept,
                     options_.index, GroupCode(0));
}

void SimAgent::CheckDeadline() {
  deadline_check_ = Instant::Never();
  if (!guardian_is_alive_ || deadline_.IsNever()) return;
  if (parts_.queue.now() < deadline_) {
    deadline_check_ = deadline_;
    parts_.queue.At(deadline_, Act::kGuardianDeadline, options_.index);
    return;
  }
  deadline_ = Instant::Never();
  if (live().count > 0) KillWorkers(milliseconds(2));
}

void SimAgent::Handle(const Due& due) {
  bool is_current = due.what / 64 == group_number_;
  switch (due.act) {
    case Act::kAgentTimer:
      timer_at_ = Instant::Never();
      if (!is_alive_ || is_frozen_) return;
      if (LocalNow() >= machine_.NextWakeup()) {
        Take(agent::TimePassed{});
      } else {
        WatchTimer();
      }
      return;
    case Act::kProbeArrives:
      parts_.network.ProbeArrives(options_.index, options_.host);
      return;
    case Act::kProbeAnswered:
      Take(agent::EndpointProbed{.is_refused = due.what == 1});
      return;
    case Act::kAgentReplays:
      if (is_alive_ && !is_frozen_ && stream_ >= 0 && attach_sent_) {
        parts_.network.Send(stream_, kept_[due.what]);
      }
      return;
    case Act::kGuardianDeadline:
      CheckDeadline();
      return;
    case Act::kGuardianKills:
      if (!guardian_is_alive_) {
        Take(agent::GuardianLost{.why = "killed"});
        return;
      }
      guardian_is_alive_ = is_alive_;
      KillWorkers(milliseconds(1));
      return;
    case Act::kWorkerStarts:
      if (is_current && guardian_is_alive_) StartWorker(due.what % 64);
      return;
    case Act::kWorkerDies:
      if (is_current) WorkerDied(due.what % 64);
      return;
    default:
      if (!is_current || !guardian_is_alive_ || !place_) return;
      RoundId round = place_->world.round;
      place_.reset();
      Take(agent::GroupGone{.round = round});
  }
}

}  // namespace muster::simulation
