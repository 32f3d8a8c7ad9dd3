#include "launcher/scheduler_place.h"

#include <string_view>
#include <utility>
#include <vector>

#include "launcher/flag_value.h"
#include "launcher/host_list.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr WholeRange kCount{1, 1'000'000, "a whole number of at least 1"};
constexpr WholeRange kRank{0, 1'000'000, "a whole number, 0 or more"};
// Below the ports that systems give out themselves (32768 on Linux), above those that services use.
constexpr uint64_t kFirstPort = 16384;
constexpr uint64_t kPortCount = 16384;

// Empty if it isn't set.
std::string Text(const GetEnv& get_env, const char* name) {
  const char* value = get_env(name);
  return value == nullptr ? "" : value;
}

absl::Status Read(const GetEnv& get_env, const char* name, const WholeRange& range, int& number) {
  absl::StatusOr<int> read = WholeNumber(name, Text(get_env, name), range);
  if (!read.ok()) return read.status();
  number = *read;
  return absl::OkStatus();
}

// All nodes of a job compute the same one, and two jobs hardly ever do (FNV-1a).
uint16_t PortOf(std::string_view run_id) {
  uint64_t hash = 14695981039346656037ULL;
  for (unsigned char c : run_id) hash = (hash ^ c) * 1099511628211ULL;
  return static_cast<uint16_t>(kFirstPort + hash % kPortCount);
}

// "2(x3),1": on three nodes two, then one.
absl::StatusOr<int> CopiesOn(int node, const std::string& tasks_per_node) {
  constexpr char kVariable[] = "SLURM_STEP_TASKS_PER_NODE";
  int first = 0;
  for (std::string_view part : Split(tasks_per_node, ',')) {
    int nodes = 1;
    size_t times = part.find("(x");
    if (times != std::string_view::npos && part.ends_with(')')) {
      std::string_view digits = part.substr(times + 2, part.size() - times - 3);
      absl::StatusOr<int> number = WholeNumber(kVariable, digits, kCount);
      if (!number.ok()) return number.status();
      nodes = *number;
      part = part.substr(0, times);
    }
    absl::StatusOr<int> tasks = WholeNumber(kVariable, part, kCount);
    if (!tasks.ok()) return tasks.status();
    first += nodes;
    if (node < first) return *tasks;
  }
  return BadValue(kVariable, tasks_per_node, "a number for each node of the step");
}

// Within a step that srun has started. (A batch script is told of the nodes too, but runs on the
// first alone.)
absl::StatusOr<std::optional<SchedulerPlace>> FindInSlurm(const GetEnv& get_env) {
  if (Text(get_env, "SLURM_STEP_NUM_NODES").empty()) return std::nullopt;
  SchedulerPlace place{.scheduler = "Slurm", .remedy = "srun --ntasks-per-node=1"};
  absl::Status status = Read(get_env, "SLURM_STEP_NUM_NODES", kCount, place.node_count);
  if (status.ok()) status = Read(get_env, "SLURM_NODEID", kRank, place.node_rank);
  if (!status.ok()) return status;
  const std::string list = Text(get_env, "SLURM_STEP_NODELIST");
  absl::StatusOr<std::vector<std::string>> hosts = ExpandHostList(list);
  if (!hosts.ok()) {
    return absl::InvalidArgumentError(
        Cat("SLURM_STEP_NODELIST: ", std::string(hosts.status().message())));
  }
  place.first_host = hosts->front();
  const std::string tasks = Text(get_env, "SLURM_STEP_TASKS_PER_NODE");
  if (!tasks.empty()) {
    absl::StatusOr<int> copies = CopiesOn(place.node_rank, tasks);
    if (!copies.ok()) return copies.status();
    place.copies_here = *copies;
  }
  place.run_id = Cat("slurm-", Text(get_env, "SLURM_JOB_ID"), ".", Text(get_env, "SLURM_STEP_ID"));
  place.port = PortOf(place.run_id);
  return place;
}

// One process of an MPI job for each node. MPI keeps to itself where the first one runs.
absl::StatusOr<std::optional<SchedulerPlace>> FindInMpi(const GetEnv& get_env, const char* name,
                                                        const char* size, const char* rank,
                                                        const char* local_size) {
  if (Text(get_env, size).empty() || Text(get_env, rank).empty()) return std::nullopt;
  SchedulerPlace place{.scheduler = name, .remedy = "mpirun --map-by ppr:1:node"};
  absl::Status status = Read(get_env, size, kCount, place.node_count);
  if (status.ok()) status = Read(get_env, rank, kRank, place.node_rank);
  if (status.ok() && !Text(get_env, local_size).empty()) {
    status = Read(get_env, local_size, kCount, place.copies_here);
  }
  if (!status.ok()) return status;
  return place;
}

void MeetAtFirstHost(const SchedulerPlace& place, RunOptions& options) {
  const uint16_t port = options.master_port.value_or(place.port);
  if (options.backend == Backend::kStatic) {
    options.master_addr = place.first_host;
    options.master_addr_given = true;
    options.master_port = port;
    return;
  }
  options.backend = Backend::kElastic;
  options.rdzv_endpoint = Cat(place.first_host, ":", port);
  if (options.run_id.empty()) options.run_id = place.run_id;
  // By rank, not by address: several nodes of a test may be one host.
  if (!options.is_host.has_value()) options.is_host = *options.node_rank == 0;
}

}  // namespace

absl::StatusOr<std::optional<SchedulerPlace>> FindSchedulerPlace(const GetEnv& get_env) {
  // Within Slurm mpirun starts its daemons by srun, as a step that lacks the node of mpirun itself:
  // what they start has both. PMI's variables come from srun's own support for it.
  auto place = FindInMpi(get_env, "Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
                         "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (place.ok() && !place->has_value()) place = FindInSlurm(get_env);
  if (place.ok() && !place->has_value()) {
    place = FindInMpi(get_env, "MPI", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS");
  }
  if (place.ok() && place->has_value() && (*place)->node_count == 1) return std::nullopt;
  return place;
}

absl::StatusOr<std::string> UseSchedulerPlace(const SchedulerPlace& place, RunOptions& options) {
  const bool wants_one_node = options.nodes_given && options.max_nodes == 1;
  if (options.standalone || wants_one_node) return "";
  // Who starts several on a node and names each has thought of it.
  if (place.copies_here > 1 && options.node_rank.has_value() && options.nodes_given) return "";
  if (place.copies_here > 1) {
    return absl::InvalidArgumentError(
        Cat(place.scheduler, " has started ", place.copies_here,
            " copies of muster on this node, but one starts all workers of a node; start one (",
            place.remedy, ") and give --nproc-per-node"));
  }
  if (!options.nodes_given) options.min_nodes = options.max_nodes = place.node_count;
  options.nodes_given = true;
  if (!options.node_rank.has_value()) options.node_rank = place.node_rank;
  const bool says_where = !options.rdzv_endpoint.empty() || options.master_addr_given;
  if (!says_where) {
    if (place.first_host.empty()) {
      return absl::InvalidArgumentError(
          Cat(place.scheduler, " has started muster on ", place.node_count,
              " nodes, but doesn't say where the first one is; give --rdzv-endpoint=HOST:PORT, or ",
              "--standalone if each node is to run a job of its own"));
    }
    MeetAtFirstHost(place, options);
  }
  return Cat(place.scheduler, ": node ", *options.node_rank, " of ", place.node_count,
             says_where ? "" : Cat("; they meet at ", place.first_host));
}

}  // namespace muster::launcher
