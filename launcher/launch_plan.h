// From what was asked and what this machine is to what will be done: the layout, where the nodes
// meet, whether this node hosts the rendezvous, and what each worker executes. Pure: options and
// facts are arguments, nothing is looked up and nothing started here.
#ifndef MUSTER_LAUNCHER_LAUNCH_PLAN_H_
#define MUSTER_LAUNCHER_LAUNCH_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/job_types.h"
#include "launcher/endpoint.h"
#include "launcher/processor_topology.h"
#include "launcher/run_options.h"

namespace muster::launcher {

// What the plan needs to know of this machine and this moment.
struct MachineFacts {
  // Processors that this process may use, by affinity and cgroup.
  int cpu_count = 1;
  // GPUs that workers will see.
  int gpu_count = 0;
  // $PYTHON_EXEC, or empty.
  std::string python_exec;
  // Whether OMP_NUM_THREADS is set, to anything.
  bool omp_threads_are_set = false;
  // A fresh unguessable id, used where a job needs one of its own.
  std::string fresh_run_id;
  // $CUDA_VISIBLE_DEVICES; nothing if it isn't set.
  std::optional<std::string> visible_gpus = std::nullopt;
  // Looked up for --numa-binding alone.
  ProcessorTopology topology{};
};

enum class Layout { kStandalone, kStatic, kElastic };

// Whether this node runs the rendezvous. By address: if the endpoint is an address of this machine.
enum class Hosting { kAlways, kNever, kByAddress };

struct LaunchPlan {
  Layout layout = Layout::kStandalone;
  JobTerms terms;
  // Port 0: the kernel chooses (only where no other node has to know it).
  Endpoint endpoint;
  Hosting hosting = Hosting::kAlways;
  // Should the port be taken by another rendezvous, this node joins it: two nodes may race for one
  // endpoint. False where another node can't be meant, so that two jobs never join each other.
  bool joins_if_port_is_taken = false;
  // Nobody else can come into the job: its one node hosts the rendezvous itself.
  bool StandsAlone() const {
    return hosting == Hosting::kAlways && terms.max_nodes == 1 && !joins_if_port_is_taken;
  }
  // A node that nobody can replace may stand still for longer (a paused container, Ctrl-Z).
  Duration DefaultLease() const { return std::chrono::seconds(StandsAlone() ? 600 : 3); }
  // Where the rendezvous listens if this node hosts it; empty: on every interface.
  std::string listen_host;
  // No agent can have been at an earlier rendezvous of this job.
  bool is_new = false;
  // If this node hosts the rendezvous, PyTorch's store is served at the same port.
  bool shares_port_with_store = false;
  std::optional<int> node_rank;
  // Where other nodes reach this one. Empty: the local end of the way to the rendezvous.
  std::string address;
  int worker_count = 1;
  // OMP_NUM_THREADS of every worker; 0: as it is inherited.
  int omp_threads = 0;
  // Of each local rank: the processors it may use. Empty: as inherited.
  std::vector<std::vector<int>> worker_cpus;
  // Of each local rank: the one GPU it sees (--virtual-local-rank). Empty: as inherited.
  std::vector<std::string> worker_gpus;
  // What every worker executes.
  std::vector<std::string> argv;
  // What the user should know though it is no error: one sentence each.
  std::vector<std::string> warnings;
};

// InvalidArgument: one sentence, for options that don't go together or that this machine can't
// fulfil ("--nproc-per-node=gpu" without a GPU).
absl::StatusOr<LaunchPlan> MakeLaunchPlan(const RunOptions& options, const MachineFacts& facts);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_LAUNCH_PLAN_H_
