// The workers of one round on this node: what is known of each, and how far the stop of the whole
// group has come. A value; owned by the agent's machine, which holds at most one; not thread-safe.
#ifndef MUSTER_AGENT_CORE_WORKER_GROUP_H_
#define MUSTER_AGENT_CORE_WORKER_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/stop_policy.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::agent {

class WorkerGroup {
 public:
  // What a worker's end means for the group. Of several that exit 0 the first and the last are
  // news.
  enum class Change { kNothing, kFirstSucceeded, kAllSucceeded, kFailed };

  WorkerGroup(StartRound place, int worker_count);

  const StartRound& place() const { return place_; }
  const World& world() const { return place_.world; }
  RoundId round() const { return place_.world.round; }

  void Started(LocalRank local_rank, int64_t pid);
  // It completed `step`. `can_save`: its program asks whether to save after each.
  void Stepped(LocalRank local_rank, int64_t step, bool can_save);
  void SaidHello(LocalRank local_rank);
  // Ends that follow from a stop are kNothing, except failures of their own: those that happened
  // before the stop (failure.age), and those in a group that a local failure stopped, which are the
  // first failure's followers.
  Change Ended(LocalRank local_rank, const WorkerFailure& failure, Instant now);
  // No process is left.
  void Gone() { is_gone_ = true; }

  bool has_succeeded() const { return has_succeeded_; }
  // At least one worker has exited 0.
  bool has_success() const { return success_count_ > 0; }
  bool has_failed() const { return !failures_.empty(); }
  // Whether that rank of the world failed on this node.
  bool HasFailed(Rank rank) const;
  bool is_gone() const { return is_gone_; }
  // Every worker speaks to the agent through the SDK, so the round fences all that it does.
  bool is_all_sdk() const { return sdk_count_ == states_.size(); }
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

  // Notes `plan`, which counts from `now`; false if a stop at least as hard is under way, or
  // nothing is left to stop.
  bool TakeStop(const StopPlan& plan, Instant now);
  // SIGKILL is on its way, or was not needed.
  bool is_being_killed() const { return is_gone_ || (stop_ && stop_->grace == Duration(0)); }

  // The last step that this worker completed; -1: none was reported.
  int64_t last_step(LocalRank local_rank) const;
  // The lowest of the workers' last completed steps; -1: not all of them have reported one.
  int64_t lowest_step() const;
  // All workers can be asked to save.
  bool can_save() const;
  bool is_running(LocalRank local_rank) const;
  int worker_count() const { return static_cast<int>(states_.size()); }
  // "3 more workers of this node were stopped by muster: 2 ended by SIGTERM, 1 killed after 5 s";
  // empty if none was.
  std::string StoppedText() const;
  // A worker took longer than the grace that it was given.
  bool had_to_kill() const { return killed_ > 0 && stop_ && stop_->grace > Duration(0); }

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

  bool IsOurDoing(const WorkerExit& exit, Instant now) const;
  void CountStopped(const WorkerExit& exit, Instant now);

  StartRound place_;
  std::vector<State> states_;
  // By local rank; -1 before the first.
  std::vector<int64_t> steps_;
  std::vector<bool> can_save_;
  // By local rank, and how many are true.
  std::vector<bool> is_sdk_;
  size_t sdk_count_ = 0;
  std::vector<Failure> failures_;
  std::optional<StopPlan> stop_;
  // Of the first plan: what the workers were asked to end by.
  int first_signal_ = 0;
  Instant stopped_at_;
  // When SIGKILL follows.
  Instant kill_at_ = Instant::Never();
  // How those that were stopped ended: by that signal, by SIGKILL, with a code of their own, by a
  // signal that wasn't ours.
  int ended_by_signal_ = 0;
  int killed_ = 0;
  int exited_ = 0;
  int otherwise_ = 0;
  size_t success_count_ = 0;
  bool has_succeeded_ = false;
  bool is_gone_ = false;
  bool is_over_ = false;
  bool is_aborted_ = false;
  bool is_told_ = false;
  bool is_fenced_ = false;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_WORKER_GROUP_H_
