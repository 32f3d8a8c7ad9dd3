// What a person asked of `muster run`, as one value: launcher/parse_run_options.h makes it from
// flags and PET_* variables, launcher/launch_plan.h checks it against the machine. Values; no
// threads, no files.
#ifndef MUSTER_LAUNCHER_RUN_OPTIONS_H_
#define MUSTER_LAUNCHER_RUN_OPTIONS_H_

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core/agent_machine.h"
#include "agent/core/input_choice.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "launcher/ssh/host_slots.h"

namespace muster::launcher {

// Static: ranks and the rendezvous are given by hand. Elastic: torchrun's c10d.
enum class Backend { kStatic, kElastic };

struct WorkerCount {
  enum class Kind { kNumber, kCpu, kGpu, kAuto };
  Kind kind = Kind::kNumber;
  int number = 1;
  friend bool operator==(const WorkerCount&, const WorkerCount&) = default;
};

// --redirects and --tee: 0 none, 1 stdout, 2 stderr, 3 both.
struct StreamSelection {
  int of_all = 0;
  // Where this isn't empty, ranks that aren't in it have 0.
  std::map<int, int> by_local_rank;

  int Of(int local_rank) const {
    if (by_local_rank.empty()) return of_all;
    auto it = by_local_rank.find(local_rank);
    return it == by_local_rank.end() ? 0 : it->second;
  }
  friend bool operator==(const StreamSelection&, const StreamSelection&) = default;
};

// Who serves PyTorch's store: muster itself, or the worker of rank 0.
enum class StoreChoice { kAgent, kWorker };

enum class PrefixChoice { kAuto, kAlways, kNever };

// --omp-threads. As torchrun: 1 if nothing is set and there is more than one worker.
struct ThreadChoice {
  enum class Kind { kAsTorchrun, kAuto, kNumber };
  Kind kind = Kind::kAsTorchrun;
  int number = 0;
  friend bool operator==(const ThreadChoice&, const ThreadChoice&) = default;
};

// --numa-binding and --bind-to: which processors each worker may use.
enum class NumaBinding { kNone, kNode, kSocket, kExclusive, kCoreComplex, kCore };

// --hosts and what belongs to it.
struct SshOptions {
  std::vector<HostSlots> hosts;
  std::string hostfile;
  // -np; 0: not given.
  int workers = 0;
  // -x, each as it was given.
  std::vector<std::string> variables;
  // Empty: the folder of this process.
  std::string folder;
  // Empty: the path of this process's executable.
  std::string remote_muster;
  std::string command = "ssh";

  // All other flags and PET_* that were given: by name, whichever counts.
  std::map<std::string, std::string, std::less<>> given;
  // Of these, the flags in their order: "--nnodes=2".
  std::vector<std::string> flags;

  bool is_asked() const { return !hosts.empty() || !hostfile.empty(); }
};

struct RunOptions {
  bool standalone = false;
  int min_nodes = 1;
  int max_nodes = 1;
  bool nodes_given = false;
  WorkerCount workers;
  std::optional<int> node_rank;
  std::string master_addr = "127.0.0.1";
  bool master_addr_given = false;
  std::optional<uint16_t> master_port;
  StoreChoice master_store = StoreChoice::kAgent;
  std::optional<Backend> backend;
  // --rdzv-endpoint as it was written, since its default port depends on the backend.
  std::string rdzv_endpoint;
  std::string run_id;
  // rdzv-conf is_host: whether this node hosts the rendezvous, whatever the addresses say.
  std::optional<bool> is_host;
  // rdzv-conf is_new: nobody has the run id from an earlier rendezvous.
  bool is_new = false;
  Duration join_timeout = std::chrono::seconds(600);
  Duration last_call_timeout = std::chrono::seconds(30);
  // Absent: LaunchPlan::DefaultLease().
  std::optional<Duration> lease;
  Duration reconnect_timeout = std::chrono::seconds(60);
  agent::LostContact lost_contact = agent::LostContact::kAuto;
  int max_restarts = 0;
  int max_restarts_per_hour = 0;
  Duration min_uptime = std::chrono::seconds(1);
  // More than the usual --max-restarts, so that a job that dies at once ends as under torchrun, and
  // few enough that one with a large budget doesn't burn it.
  int max_early_failures = 10;
  int max_stuck_restarts = 3;
  int max_node_failures = 0;
  std::string topology_key;
  bool allow_other_programs = false;
  std::string local_addr;
  std::string role = "default";
  bool is_module = false;
  bool no_python = false;
  // Modules that are imported once for all workers, separated by commas; empty: none.
  std::string preload;
  // --run-path: a Python script whatever --no-python says.
  bool run_path = false;
  agent::InputChoice input;
  ThreadChoice threads;
  NumaBinding numa_binding = NumaBinding::kNone;
  // Which of the two flags said so.
  std::string binding_flag;
  bool virtual_local_rank = false;
  // --local-rank-in-args.
  bool names_local_rank = false;
  // --signals-to-handle: those that end the job in order.
  std::vector<int> stop_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  std::string log_dir;
  // Where the verdict goes in a form for machines; empty: nowhere.
  std::string result_file;
  StreamSelection redirects;
  StreamSelection tee;
  // --local-ranks-filter: whose output the console shows; empty: everybody's.
  std::set<int> shown_ranks;
  // --duplicate-stdout-filters, --duplicate-stderr-filters; empty: none.
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  // Size at which a log file is put aside for a new one; 0: never.
  int64_t log_max_bytes = 0;
  Duration shutdown_timeout = std::chrono::seconds(30);
  // --preemption-file; empty: none. --preemption-signal; 0: none.
  std::string preemption_file;
  int preemption_signal = 0;
  ScaleUp scale_up = ScaleUp::kAuto;
  Duration lost_peer_grace{0};
  // How long an SDK worker may make no step; 0: for ever.
  Duration hang_timeout{0};
  // Sent to a hung worker that catches it; 0: none.
  int stack_signal = 10;
  PrefixChoice prefix = PrefixChoice::kAuto;
  // --log-line-prefix-template; empty: the variable's, or torchrun's own.
  std::string prefix_pattern;
  // What was given for torchrun's sake and has no effect here, as it was spelled.
  std::vector<std::string> idle;
  // What of the environment was left aside, and why: a sentence each.
  std::vector<std::string> ignored;
  SshOptions ssh;
  // The program or module, then its arguments, byte for byte.
  std::vector<std::string> program;

  bool wants_help = false;
  bool wants_version = false;
};

// Looks up one environment variable; null if it isn't set.
using GetEnv = std::function<const char*(const char*)>;

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_RUN_OPTIONS_H_
