#include "launcher/launch_plan.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "base/version.h"
#include "launcher/numa_binding.h"
#include "launcher/program_text.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// torchrun's.
constexpr uint16_t kStaticPort = 29500;
constexpr uint16_t kElasticPort = 29400;
constexpr char kLoopback[] = "127.0.0.1";

Layout ChooseLayout(const RunOptions& options) {
  if (options.standalone) return Layout::kStandalone;
  if (options.backend == Backend::kElastic) return Layout::kElastic;
  if (options.backend == Backend::kStatic) {
    // torchrun's rule for a plain `torchrun train.py`: two jobs on one machine must not collide.
    bool is_plain =
        options.max_nodes == 1 && !options.master_port.has_value() && options.rdzv_endpoint.empty();
    return is_plain ? Layout::kStandalone : Layout::kStatic;
  }
  if (options.min_nodes != options.max_nodes) return Layout::kElastic;
  if (!options.rdzv_endpoint.empty() && !options.node_rank.has_value()) return Layout::kElastic;
  if (options.max_nodes == 1 && !options.master_port.has_value() && options.rdzv_endpoint.empty()) {
    return Layout::kStandalone;
  }
  return Layout::kStatic;
}

absl::StatusOr<int> CountWorkers(const WorkerCount& wanted, const MachineFacts& facts) {
  switch (wanted.kind) {
    case WorkerCount::Kind::kNumber:
      return wanted.number;
    case WorkerCount::Kind::kCpu:
      return facts.cpu_count;
    case WorkerCount::Kind::kAuto:
      return facts.gpu_count > 0 ? facts.gpu_count : facts.cpu_count;
    case WorkerCount::Kind::kGpu:
      break;
  }
  if (facts.gpu_count > 0) return facts.gpu_count;
  return absl::InvalidArgumentError(
      "--nproc-per-node=gpu: this machine has no GPU that workers could see; give a number, cpu or "
      "auto");
}

std::vector<std::string> WorkerArgv(const RunOptions& options, const MachineFacts& facts) {
  std::vector<std::string> argv;
  if (!options.no_python) {
    argv.push_back(facts.python_exec.empty() ? "python3" : facts.python_exec);
    // Unbuffered: what a worker printed before it was killed is worth most.
    argv.push_back("-u");
    if (options.is_module) argv.push_back("-m");
  }
  argv.insert(argv.end(), options.program.begin(), options.program.end());
  return argv;
}

// torchrun passes over such ranks in silence, and one line may serve nodes of different sizes: a
// warning, not a refusal.
void WarnOfAbsentRanks(const char* flag, const StreamSelection& selection, LaunchPlan& plan) {
  for (const auto& [local_rank, value] : selection.by_local_rank) {
    if (local_rank < plan.worker_count) continue;
    plan.warnings.push_back(Cat(flag, " names local rank ", local_rank, " (\"", local_rank, ":",
                                value, "\"), but this node has local ranks 0 to ",
                                plan.worker_count - 1, "; nothing comes of it"));
  }
}

// What torchrun's users have seen at every start, in one line instead of five.
constexpr char kOneThreadEach[] =
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, as torchrun "
    "does; --omp-threads=auto divides the processors among the workers";

void PlanThreads(const RunOptions& options, const MachineFacts& facts, LaunchPlan& plan) {
  switch (options.threads.kind) {
    case ThreadChoice::Kind::kNumber:
      plan.omp_threads = options.threads.number;
      return;
    case ThreadChoice::Kind::kAuto:
      plan.omp_threads = std::max(facts.cpu_count / plan.worker_count, 1);
      return;
    case ThreadChoice::Kind::kAsTorchrun:
      break;
  }
  // Several workers of one node each with a thread per processor would fight for them.
  if (facts.omp_threads_are_set || plan.worker_count == 1) return;
  plan.omp_threads = 1;
  plan.warnings.emplace_back(kOneThreadEach);
}

absl::Status PlanGpus(const RunOptions& options, const MachineFacts& facts, LaunchPlan& plan) {
  if (!options.virtual_local_rank) return absl::OkStatus();
  const std::string visible = facts.visible_gpus.value_or("");
  const std::vector<std::string_view> entries = Split(visible, ',');
  if (facts.visible_gpus && static_cast<int>(entries.size()) < plan.worker_count) {
    return absl::InvalidArgumentError(Cat("--virtual-local-rank: CUDA_VISIBLE_DEVICES=", visible,
                                          " names fewer GPUs than there "
                                          "are workers (",
                                          plan.worker_count,
                                          "); start fewer workers, or name more GPUs"));
  }
  for (int i = 0; i < plan.worker_count; ++i) {
    plan.worker_gpus.push_back(facts.visible_gpus
                                   ? std::string(Strip(entries[static_cast<size_t>(i)]))
                                   : std::to_string(i));
  }
  return absl::OkStatus();
}

absl::Status PlanProcessors(const RunOptions& options, const MachineFacts& facts,
                            LaunchPlan& plan) {
  if (options.numa_binding == NumaBinding::kNone) return absl::OkStatus();
  absl::StatusOr<std::vector<std::vector<int>>> bound =
      BindWorkers(options.numa_binding, facts.topology, plan.worker_count, options.binding_flag);
  if (!bound.ok()) return bound.status();
  plan.worker_cpus = *std::move(bound);
  return absl::OkStatus();
}

// What each worker of this node gets that others don't.
absl::Status PlanWorkers(const RunOptions& options, const MachineFacts& facts, LaunchPlan& plan) {
  absl::StatusOr<int> workers = CountWorkers(options.workers, facts);
  if (!workers.ok()) return workers.status();
  plan.worker_count = *workers;
  plan.argv = WorkerArgv(options, facts);
  PlanThreads(options, facts, plan);
  if (absl::Status planned = PlanGpus(options, facts, plan); !planned.ok()) return planned;
  return PlanProcessors(options, facts, plan);
}

// What the user asked for and nothing comes of.
void WarnOfIdleOptions(const RunOptions& options, LaunchPlan& plan) {
  WarnOfAbsentRanks("--redirects", options.redirects, plan);
  WarnOfAbsentRanks("--tee", options.tee, plan);
  for (int rank : options.shown_ranks) {
    if (rank < plan.worker_count) continue;
    plan.warnings.push_back(Cat("--local-ranks-filter names local rank ", rank,
                                ", but this node has local ranks 0 to ", plan.worker_count - 1,
                                "; nothing comes of it"));
  }
  for (const auto& [flag, filters, stream, bit] :
       {std::tuple{"--duplicate-stdout-filters", &options.stdout_filters, "stdout", 1},
        {"--duplicate-stderr-filters", &options.stderr_filters, "stderr", 2}}) {
    bool is_teed = false;
    for (int i = 0; i < plan.worker_count; ++i) is_teed = is_teed || (options.tee.Of(i) & bit) != 0;
    if (filters->empty() || is_teed) continue;
    plan.warnings.push_back(Cat(flag, " has no effect, as it looks at what --tee takes of ", stream,
                                "; add --tee=", bit));
  }
  plan.warnings.insert(plan.warnings.end(), options.ignored.begin(), options.ignored.end());
  std::string idle;
  for (const std::string& flag : options.idle) idle += Cat(idle.empty() ? "" : ", ", flag);
  if (!idle.empty()) {
    plan.warnings.push_back(Cat("without effect here, accepted for torchrun's sake: ", idle));
  }
}

absl::Status PlanStandalone(const RunOptions& options, const MachineFacts& facts,
                            LaunchPlan& plan) {
  if (options.min_nodes > 1) {
    return absl::InvalidArgumentError(
        Cat("--standalone is for one node, but --nnodes asks for at least ", options.min_nodes,
            "; leave one of them out"));
  }
  plan.terms.max_nodes = 1;
  plan.terms.run_id = facts.fresh_run_id;
  plan.endpoint = {.host = kLoopback, .port = 0};
  plan.listen_host = kLoopback;
  plan.address = options.local_addr.empty() ? kLoopback : options.local_addr;
  return absl::OkStatus();
}

absl::Status PlanStatic(const RunOptions& options, LaunchPlan& plan) {
  if (options.min_nodes != options.max_nodes) {
    return absl::InvalidArgumentError(
        Cat("--nnodes=", options.min_nodes, ":", options.max_nodes,
            " needs the elastic layout; give --rdzv-endpoint and leave --rdzv-backend=static out"));
  }
  int rank = options.node_rank.value_or(0);
  if (rank >= options.max_nodes) {
    return absl::InvalidArgumentError(Cat("--node-rank=", rank, " is out of range: with ",
                                          "--nnodes=", options.max_nodes, " it is 0 to ",
                                          options.max_nodes - 1));
  }
  plan.terms.is_static = true;
  plan.node_rank = rank;
  plan.endpoint = {.host = options.master_addr, .port = options.master_port.value_or(kStaticPort)};
  if (!options.rdzv_endpoint.empty() && !options.master_addr_given) {
    plan.endpoint = *ParseEndpoint(options.rdzv_endpoint, plan.endpoint.port);
  }
  if (plan.endpoint.port == 0) {
    return absl::InvalidArgumentError("the static layout needs a port that all nodes know, not 0");
  }
  if (options.max_nodes > 1 && !options.master_addr_given && options.rdzv_endpoint.empty()) {
    plan.warnings.push_back(Cat("--master-addr isn't given, so the nodes meet at ",
                                plan.endpoint.ToString(),
                                ", which only nodes on this machine can reach"));
  }
  plan.hosting = rank == 0 ? Hosting::kAlways : Hosting::kNever;
  plan.joins_if_port_is_taken = options.max_nodes > 1;
  plan.address = options.local_addr;
  if (plan.address.empty() && rank == 0) plan.address = plan.endpoint.host;
  plan.shares_port_with_store = options.master_store == StoreChoice::kAgent && rank == 0;
  // All that nodes know is one name and port, which may be any address of this machine. With one
  // node nobody but its own agent has to come in, and its workers to the store, by that name.
  const bool is_loopback = plan.address == kLoopback || plan.address == "localhost";
  const bool is_private = is_loopback || !plan.shares_port_with_store;
  plan.listen_host = options.max_nodes == 1 && is_private ? kLoopback : "";
  return absl::OkStatus();
}

absl::Status PlanElastic(const RunOptions& options, LaunchPlan& plan) {
  // Without a word about where to meet, one node needs no port that others know: two jobs on one
  // machine must not find each other.
  const std::string nowhere = options.max_nodes == 1 ? "localhost:0" : "localhost";
  const std::string text = options.rdzv_endpoint.empty() ? nowhere : options.rdzv_endpoint;
  plan.endpoint = *ParseEndpoint(text, kElasticPort);
  if (plan.endpoint.host == "0.0.0.0" || plan.endpoint.host == "::") {
    return absl::InvalidArgumentError(Cat(
        "--rdzv-endpoint=", text, " isn't an address that other nodes could connect to; name the ",
        "host that shall run the rendezvous"));
  }
  plan.listen_host = plan.endpoint.host;
  plan.hosting = Hosting::kByAddress;
  if (options.is_host.has_value()) {
    plan.hosting = *options.is_host ? Hosting::kAlways : Hosting::kNever;
  }
  plan.joins_if_port_is_taken = true;
  plan.node_rank = options.node_rank;
  plan.address = options.local_addr;
  if (plan.endpoint.port != 0) return absl::OkStatus();
  if (options.max_nodes > 1) {
    return absl::InvalidArgumentError(
        Cat("--rdzv-endpoint=", text, " with --nnodes=", options.min_nodes, ":", options.max_nodes,
            " needs a port that all nodes know, not 0"));
  }
  plan.hosting = Hosting::kAlways;
  plan.joins_if_port_is_taken = false;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LaunchPlan> MakeLaunchPlan(const RunOptions& options, const MachineFacts& facts) {
  LaunchPlan plan;
  plan.layout = ChooseLayout(options);
  plan.is_new = options.is_new;
  plan.terms.run_id = options.run_id.empty() ? "none" : options.run_id;
  plan.terms.min_nodes = options.min_nodes;
  plan.terms.max_nodes = options.max_nodes;
  plan.terms.max_restarts = options.max_restarts;
  plan.terms.max_restarts_per_hour = options.max_restarts_per_hour;
  plan.terms.min_uptime = options.min_uptime;
  plan.terms.max_early_failures = options.max_early_failures;
  plan.terms.max_stuck_restarts = options.max_stuck_restarts;
  plan.terms.max_node_failures = options.max_node_failures;
  if (!options.allow_other_programs) plan.terms.program = ProgramText(options);
  plan.terms.scale_up = options.scale_up;
  plan.terms.join_timeout = options.join_timeout;
  plan.terms.last_call_timeout = options.last_call_timeout;
  plan.terms.version = kVersion;
  if (absl::Status planned = PlanWorkers(options, facts, plan); !planned.ok()) return planned;
  WarnOfIdleOptions(options, plan);

  absl::Status planned;
  switch (plan.layout) {
    case Layout::kStandalone:
      planned = PlanStandalone(options, facts, plan);
      break;
    case Layout::kStatic:
      planned = PlanStatic(options, plan);
      break;
    case Layout::kElastic:
      planned = PlanElastic(options, plan);
      break;
  }
  if (!planned.ok()) return planned;
  return plan;
}

}  // namespace muster::launcher
