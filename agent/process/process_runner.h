// Starts, watches and ends the workers of one node. An interface: the real one talks to the
// guardian (agent/process/guardian_runner.h), the fake one is for tests. Thread-safe; the
// observer's methods run on a thread of the runner and must only enqueue; the observer must outlive
// the runner.
#ifndef MUSTER_AGENT_PROCESS_PROCESS_RUNNER_H_
#define MUSTER_AGENT_PROCESS_PROCESS_RUNNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster::agent {

// What to execute for one worker.
struct WorkerCommand {
  LocalRank local_rank;
  Rank rank;
  // argv[0] is looked up on PATH unless it holds a slash.
  std::vector<std::string> argv;
  // The whole environment, "NAME=value" each.
  std::vector<std::string> environment;
  // Value of MUSTER_WORKER_ID in `environment`: how left-over descendants are found.
  std::string worker_id;
  // Where the worker's stdout and stderr go: write ends of pipes, owned by the runner from Spawn()
  // on (it closes them once the worker has them). -1: inherited from the agent.
  int stdout_fd = -1;
  int stderr_fd = -1;
  // Its stdin is the agent's; else /dev/null.
  bool gets_input = false;
  // The processors it may use, ascending; empty: as the agent. Where they can't be had any more, it
  // runs on those of the agent.
  std::vector<int> cpus;
};

class ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;
  virtual void OnWorkerStarted(RoundId round, LocalRank local_rank, int64_t pid) = 0;
  // exec failed: `error` is an errno (ENOENT, EACCES, ...). No OnWorkerExited follows.
  virtual void OnWorkerFailedToStart(RoundId round, LocalRank local_rank, int error) = 0;
  // In the order in which the workers ended; `at`: when, by the machine's monotonic clock.
  virtual void OnWorkerExited(RoundId round, LocalRank local_rank, int64_t pid, WorkerExit exit,
                              Instant at) = 0;
  // After Stop(): all workers have ended; these that they have left behind still run and are given
  // `grace`, as the stop gave the workers. At most once a round, if it takes more than a moment.
  virtual void OnLeftBehind(RoundId round, std::vector<int64_t> pids, Duration grace) = 0;
  // After Stop(): no worker of the round nor any descendant is left, or `unkillable` names what had
  // to be given up on (a process in uninterruptible sleep).
  virtual void OnGroupGone(RoundId round, std::vector<int64_t> unkillable) = 0;
  // Workers start afresh from now on: `why` they can't be forked from a Python that was preloaded.
  virtual void OnPreloadLost(std::string why) = 0;
  // The guardian ended although the agent lives; the runner has killed the groups it knew of.
  virtual void OnGuardianLost(std::string why) = 0;
};

// A Python that imports modules once and then forks the workers.
struct PreloadCommand {
  // Separated by commas.
  std::string modules;
  // Of every worker: "python3 -u [-m] SCRIPT ...".
  std::vector<std::string> argv;
  // What all workers share, "NAME=value" each.
  std::vector<std::string> environment;
};

struct StopOptions {
  int first_signal = 15;
  // From the first signal to SIGKILL; zero: SIGKILL at once.
  Duration grace = std::chrono::seconds(30);
};

class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  // Before the first Spawn(), at most once: workers of all rounds are forked from it. Those that
  // are spawned while it still imports wait for it.
  virtual void Preload(PreloadCommand command) = 0;
  // Starts one round's workers, each in a session of its own. The group before must be gone.
  virtual void Spawn(RoundId round, std::vector<WorkerCommand> workers) = 0;
  // Ends the round's workers and their descendants, then reports OnGroupGone. A second call with a
  // shorter grace shortens it. Right too when all workers have exited (left-overs are swept then).
  virtual void Stop(RoundId round, StopOptions options) = 0;
  // Sends a signal to every worker's group, such as SIGUSR1 forwarded.
  virtual void Signal(int signal) = 0;
  // Sends a signal to one worker's group; nothing happens if it has ended.
  virtual void SignalWorker(RoundId round, LocalRank local_rank, int signal) = 0;
  // The guardian kills all workers if this deadline passes without a later one: the agent is
  // frozen.
  virtual void RenewDeadline(Instant deadline) = 0;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_PROCESS_RUNNER_H_
