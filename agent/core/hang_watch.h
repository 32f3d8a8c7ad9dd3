// Tells when a worker of this node hangs, and which one is to blame: when one rank stands still,
// all that wait for it in a collective do, on all nodes. Two signs count, both given by the SDK
// alone:
//   - no Ping was answered for the timeout: the process is stopped, or can't run;
//   - no step was completed for the timeout, though one was before.
// A missing step is judged by what the worker's answers say that it does. Each agent sees its own
// workers alone, so those that surely are victims leave the others time to speak:
//
//                                     with one node      with others
//   gives no sign of life             timeout            timeout
//   in its own code, or unknown       timeout            a quarter more
//   waits for other ranks             timeout            a quarter and the grace more
//
// A value whose methods take the time; owned by the agent's machine; not thread-safe.
#ifndef MUSTER_AGENT_CORE_HANG_WATCH_H_
#define MUSTER_AGENT_CORE_HANG_WATCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster::agent {

class HangWatch {
 public:
  struct Finding {
    LocalRank local_rank;
    // -1: it never completed one.
    int64_t last_step = -1;
    // WorkerFailure::only_waited: all that stand still here wait, and no other node spoke in time.
    bool only_waited = false;
    // WorkerFailure::evidence.
    std::string evidence;
  };

  // Zero: nothing ever hangs.
  explicit HangWatch(Duration timeout) : timeout_(timeout) {}

  struct Round {
    Rank first_rank;
    int worker_count = 0;
    // The round has workers on other nodes.
    bool has_other_nodes = false;
  };
  void RoundStarts(const Round& round, Instant now);

  void Stepped(LocalRank local_rank, int64_t step, Instant now);
  // It gave a sign of life: said Hello, or answered a Ping, maybe with what it does.
  void Answered(LocalRank local_rank, const std::optional<Activity>& activity, Instant now);
  // It has ended, or closed its channel: nobody can say any more whether it hangs.
  void Left(LocalRank local_rank);

  // True when all workers are to be pinged now; four times within the timeout.
  bool TakePing(Instant now);
  // The worker to blame. Once it is found nothing more is, until it has left. To be called whenever
  // NextWakeup() is reached.
  std::optional<Finding> Check(Instant now);
  Instant NextWakeup() const;

 private:
  struct Worker {
    int64_t step = -1;
    Instant stepped_at;
    bool has_answered = false;
    Instant answered_at;
    // As of an answer.
    Activity activity;
    bool has_left = false;
  };

  bool IsSilent(const Worker& worker, Instant now, Duration limit) const;
  bool StandsStill(const Worker& worker, Instant now, Duration limit) const;
  bool IsDue(Instant now) const;
  Duration StepLimit(const Worker& worker) const;
  // Our own standing still (a suspended machine, an overloaded one) is no worker's fault.
  void ForgetOurAbsence(Instant now);
  size_t FindSilent(Instant now) const;
  size_t FindStraggler(Instant now) const;
  std::string EvidenceOfSilence(const Worker& worker, Instant now) const;
  std::string EvidenceOfNoStep(size_t blamed, Instant now) const;

  const Duration timeout_;
  Round round_;
  std::vector<Worker> workers_;
  Instant next_ping_ = Instant::Never();
  Instant last_look_;
  std::optional<LocalRank> found_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_HANG_WATCH_H_
