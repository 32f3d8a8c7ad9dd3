// What a batch system has told this process about its place in a job: `srun muster run train.py` on
// every node needs no flag more. Pure: the environment is an argument.
#ifndef MUSTER_LAUNCHER_SCHEDULER_PLACE_H_
#define MUSTER_LAUNCHER_SCHEDULER_PLACE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/run_options.h"

namespace muster::launcher {

struct SchedulerPlace {
  // For people: "Slurm".
  std::string scheduler{};
  int node_count = 1;
  int node_rank = 0;
  // Copies of muster on this node; more than one is a slip.
  int copies_here = 1;
  // How to ask for one copy a node.
  std::string remedy{};
  // Where node rank 0 runs; empty: the batch system doesn't say.
  std::string first_host{};
  // Another for every job that may run at the same time.
  std::string run_id{};
  uint16_t port = 0;
};

// From the variables that srun (SLURM_*), Open MPI's mpirun (OMPI_*) and MPICH's mpiexec (PMI_*)
// set for each process. Nothing outside of them, in a batch script before srun, and where all is on
// one node. InvalidArgument: a variable that holds nonsense.
absl::StatusOr<std::optional<SchedulerPlace>> FindSchedulerPlace(const GetEnv& get_env);

// Fills in what was not given as a flag or PET_*: nodes, node rank, run id, endpoint. Does nothing
// for --standalone or one node. Answers with a line for people that says what came of it; empty:
// nothing. InvalidArgument: several copies on this node, or nobody says where the nodes are to
// meet.
absl::StatusOr<std::string> UseSchedulerPlace(const SchedulerPlace& place, RunOptions& options);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SCHEDULER_PLACE_H_
