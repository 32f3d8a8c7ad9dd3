#include <utility>

#include "agent/core/agent_rules.h"

namespace muster::agent {

// ---- hangs ---------------------------------------------------------------------------------

void AgentRules::On(const WorkerAnswered& event) {
  if (IsLive(event.world)) hang_watch_.Answered(event.local_rank, event.activity, now_);
}

void AgentRules::On(const WorkerLeft& event) {
  if (IsLive(event.world)) hang_watch_.Left(event.local_rank);
}

void AgentRules::LookForHangs() {
  if (!group_ || !group_->is_live()) return;
  if (hang_watch_.TakePing(now_)) Emit(PingWorkers{group_->world()});
  std::optional<HangWatch::Finding> found = hang_watch_.Check(now_);
  if (!found) return;
  Emit(LookAtHungWorker{.round = group_->round(),
                        .local_rank = found->local_rank,
                        .last_step = found->last_step,
                        .only_waited = found->only_waited,
                        .evidence = std::move(found->evidence)});
}

}  // namespace muster::agent
