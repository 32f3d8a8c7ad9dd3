// The environment of one worker: what it inherits, byte for byte, with torchrun's variables and
// ours (base/env.h) in place of any that an outer launcher left. Pure functions.
#ifndef MUSTER_AGENT_CORE_WORKER_ENVIRONMENT_H_
#define MUSTER_AGENT_CORE_WORKER_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/session_messages.h"

namespace muster::agent {

// What is the same for all workers of a node in one round.
struct WorkerSurroundings {
  std::string run_id;
  std::string role;
  int worker_count = 1;
  int max_restarts = 0;
  Incarnation incarnation;
  // Name of the agent's abstract socket, without the leading NUL byte.
  std::string agent_socket;
  // Of the terminal that shows the workers' stdout; 0: no terminal does.
  int console_columns = 0;
  // MUSTER_STACK_SIGNAL; 0: none.
  int stack_signal = 0;
  // OMP_NUM_THREADS; 0: as inherited.
  int omp_threads = 0;
  // Of each local rank: the one GPU that it sees, its device 0. Empty: as inherited.
  std::vector<std::string> gpus;
  // TORCHELASTIC_SIGNALS_TO_HANDLE.
  std::string stop_signals;
  // The agent of group rank 0 serves PyTorch's store; else rank 0's worker hosts it.
  bool has_agent_store = false;
  // "NAME=value" each; kept as they are, also entries that are no assignment.
  std::vector<std::string> inherited;
};

// "<incarnation>/<round>/<local rank>": the value of MUSTER_WORKER_ID.
std::string WorkerIdOf(const Incarnation& incarnation, RoundId round, LocalRank local_rank);

// What doesn't differ between the workers of a node, nor between rounds: what they may find set
// before they know who they are.
std::vector<std::string> CommonEnvironment(const WorkerSurroundings& surroundings);

// `error_file` is the path of the worker's error file; empty: it shall write none.
std::vector<std::string> WorkerEnvironment(const StartRound& place, LocalRank local_rank,
                                           const std::string& error_file,
                                           const WorkerSurroundings& surroundings);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_WORKER_ENVIRONMENT_H_
