// From what was asked to what each of --hosts is started with: the command that starts muster there
// and the plan that it reads. Pure: facts of this machine are arguments.
#ifndef MUSTER_LAUNCHER_SSH_SSH_PLAN_H_
#define MUSTER_LAUNCHER_SSH_SSH_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/run_options.h"
#include "launcher/ssh/remote_plan.h"

namespace muster::launcher {

// Of the launching side.
struct SshFacts {
  std::string host_name;
  // Path of this executable.
  std::string executable;
  // The folder of this process.
  std::string folder;
  // This process's environment, "NAME=value".
  std::vector<std::string> environment;
  // Fresh and unguessable: names the job at its rendezvous, and marks its records.
  std::string fresh_id;
};

struct SshHost {
  // As it was given, without a number.
  std::string name{};
  // Started here, without ssh.
  bool is_local = false;
  // What is executed here to start it.
  std::vector<std::string> command{};
  // --nproc-per-node of that host.
  std::string workers{};
};

struct SshPlan {
  std::vector<SshHost> hosts;
  // With fewer the job can't go on.
  int min_hosts = 1;
  std::string folder;
  // Of muster there, for messages.
  std::string remote_muster;
  // Begins the records of this job.
  std::string mark;
  std::vector<std::string> environment;
  // What the user should know though it is no error.
  std::vector<std::string> warnings;
};

// `hosts` are those of --hosts or of the host file. InvalidArgument: one sentence, for what doesn't
// go together.
absl::StatusOr<SshPlan> MakeSshPlan(const RunOptions& options, const std::vector<HostSlots>& hosts,
                                    const SshFacts& facts);

// What the host at this place reads. `port`: where the first host hosts the rendezvous, unless
// --master-port or --rdzv-endpoint says otherwise.
RemotePlan PlanForHost(const RunOptions& options, const SshFacts& facts, const SshPlan& plan,
                       size_t place, uint16_t port);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_SSH_PLAN_H_
