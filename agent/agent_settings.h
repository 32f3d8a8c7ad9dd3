// What an agent is told at its start: what to run, with which environment, and where output goes. A
// value, filled in by the launcher.
#ifndef MUSTER_AGENT_AGENT_SETTINGS_H_
#define MUSTER_AGENT_AGENT_SETTINGS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/agent_machine.h"
#include "agent/core/input_choice.h"

namespace muster::agent {

enum class PrefixMode { kAuto, kAlways, kNever };

// Where one worker's streams go, as --redirects and --tee say (torchrun's values 0..3).
struct StreamChoice {
  // To a file instead of the console.
  bool redirect_stdout = false;
  bool redirect_stderr = false;
  // To a file and the console.
  bool tee_stdout = false;
  bool tee_stderr = false;
  // The console shows what isn't redirected.
  bool is_shown = true;
};

// Who serves PyTorch's store at MASTER_ADDR:MASTER_PORT.
enum class MasterStore {
  // The agent of group rank 0, at a port of its own for each round.
  kAgent,
  // `muster run` of node rank 0, at the port of the rendezvous (`AgentSettings::shared_port`).
  kSharedPort,
  // Rank 0's worker, at a port that was free a moment ago.
  kWorker,
};

struct AgentSettings {
  // What to attach with, the endpoint for messages, time-outs. `core.attach.incarnation` and
  // `candidate_port` are filled in by the agent.
  AgentOptions core;

  // Where other nodes reach this one now, in place of `core.attach.address`; an empty answer leaves
  // it as it was. Asked whenever contact is sought; must not block. Null: it stays as it is.
  std::function<std::string()> find_address;

  MasterStore master_store = MasterStore::kWorker;
  uint16_t shared_port = 0;

  // argv of every worker; argv[0] is looked up on PATH unless it holds a slash.
  std::vector<std::string> argv;
  // --preload: modules that Python imports once for all workers, separated by commas; empty: each
  // worker starts afresh. `argv` is then "PYTHON -u [-m] SCRIPT ...".
  std::string preload;
  // What workers inherit, "NAME=value" each, byte for byte: usually the launcher's `environ`.
  std::vector<std::string> environment;
  // OMP_NUM_THREADS of every worker; 0: as inherited.
  int omp_threads = 0;
  // Of each local rank: the processors it may use, and the GPU that it sees as its only one
  // (LOCAL_RANK is 0 then). Missing ones: as inherited.
  std::vector<std::vector<int>> worker_cpus;
  std::vector<std::string> worker_gpus;
  // "SIGTERM,SIGINT,...": TORCHELASTIC_SIGNALS_TO_HANDLE of the workers.
  std::string stop_signals;
  // ${local_rank} in `argv` stands for each worker's own.
  bool names_local_rank = false;
  // Who reads our standard input.
  InputChoice input;
  // --role: ROLE_NAME, and the name in the output's prefix.
  std::string role = "default";
  // Sent to a hung worker that catches it, so that it shows its stacks; 0: none.
  int stack_signal = 0;
  // How the job is called in the failure summary: the program's name.
  std::string program;

  // Makes of a line of our own (the verdict has several) the line that is shown; null: it is shown
  // as it is. Called on other threads.
  std::function<std::string(const std::string& text, bool is_verdict)> frame_own;

  // Where a launcher above us looks for the cause (our own TORCHELASTIC_ERROR_FILE): gets the
  // failed worker's error record, or one of ours. Empty: nowhere.
  std::string error_file;

  // --log-dir; empty: none. `<log_dir>/<run_id>_<random>/attempt_<n>/<local_rank>/...`
  std::string log_dir;
  // One for each local rank; missing ones are all-console.
  std::vector<StreamChoice> streams;
  PrefixMode prefix = PrefixMode::kAuto;
  // agent/output_prefix.h; empty: torchrun's.
  std::string prefix_pattern;
  // Teed lines with one of these texts are gathered in filtered_stdout.log (filtered_stderr.log).
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  // Of a log file, before it is put aside; 0: no limit.
  uint64_t log_max_bytes = 0;
  // Where the workers' output, our own lines and the failure summary go.
  int stdout_fd = 1;
  int stderr_fd = 2;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_AGENT_SETTINGS_H_
