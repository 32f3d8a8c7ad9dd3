// The workers of one round on this node: what is known of each, and how far the stop of the whole
// group has come. A value; owned by the agent's machine, which holds at most one; not thread-safe.
#ifndef MUSTER_AGENT_CORE_WORKER_GROUP_H_
#define MUSTER_AGENT_CORE_WORKER_GROUP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/core/stop_policy.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::agent {

class WorkerGroup {
 public:
  // What a worker's end means for the group.
  enum class Change { kNothing, kOneSucceeded, kAllSucceeded, kFailed };

  WorkerGroup(StartRound place, int worker_count);

  const StartRound& place() const { return place_; }
  const World& world() const { return place_.world; }
  RoundId round() const { return place_.world.round; }

  void Started(LocalRank local_rank, int64_t pid);
  // It completed `step`. `can_save`: its program asks whether to save after each.
  void Stepped(LocalRank local_rank, int64_t step, bool can_save);
  // Ends that follow from a stop are kNothing, except failures of their own in a group that a local
  // failure stopped: those are the first failure's followers.
  Change Ended(LocalRank local_rank, const WorkerFailure& failure, Instant now);
  // No process is left.
  void Gone() { is_gone_ = true; }

  bool has_succeeded() const { return has_succeeded_; }
  bool has_failed() const { return !failures_.empty(); }
  bool is_gone() const { return is_gone_; }
  // The workers may make progress: none failed, no stop was asked for, contact holds.
  bool is_live() const { return !is_over_; }

  // The round is over for this node: from now on nothing its workers do counts.
  void MakeOver() { is_over_ = true; }
  // The same, and its collectives have to end. True the first time.
  bool TakeAbort();
  // The rendezvous knows that the round is over: it sent StopRound, so StopDone is owed once all
  // are gone, and failures are no news.
  void ToldToStop() { is_told_ = true; }
  bool is_told() const { return is_told_; }
  // This node must not speak for the round any more (lease over, superseded): once gone, forgotten.
  void Fence() { is_fenced_ = true; }
  bool is_fenced() const { return is_fenced_; }

  // Notes `plan`; false if a stop at least as hard is under way, or nothing is left to stop.
  bool TakeStop(const StopPlan& plan);
  // SIGKILL is on its way, or was not needed.
  bool is_being_killed() const { return is_gone_ || (stop_ && stop_->grace == Duration(0)); }

  // The lowest of the workers' last completed steps; -1: not all of them have reported one.
  int64_t lowest_step() const;
  // All workers can be asked to save.
  bool can_save() const;
  bool is_running(LocalRank local_rank) const;
  int worker_count() const { return static_cast<int>(states_.size()); }

  // Failures for the rendezvous, with their age as of `now`.
  std::vector<WorkerFailure> Failures(Instant now) const;
  RunningWorld ToRunningWorld(std::optional<Commit> last_commit) const;
  StopDone ToStopDone() const;

 private:
  enum class State { kStarting, kRunning, kSucceeded, kFailed, kStopped };
  struct Failure {
    WorkerFailure failure;
    Instant noticed;
  };

  bool IsOurDoing(const WorkerExit& exit) const;

  StartRound place_;
  std::vector<State> states_;
  // By local rank; -1 before the first.
  std::vector<int64_t> steps_;
  std::vector<bool> can_save_;
  std::vector<Failure> failures_;
  std::optional<StopPlan> stop_;
  bool has_succeeded_ = false;
  bool is_gone_ = false;
  bool is_over_ = false;
  bool is_aborted_ = false;
  bool is_told_ = false;
  bool is_fenced_ = false;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_WORKER_GROUP_H_
