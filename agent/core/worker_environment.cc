#include "agent/core/worker_environment.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/env.h"

namespace muster::agent {
namespace {

struct Variable {
  std::string name;
  std::string value;
};

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

bool IsSet(const std::vector<std::string>& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(), [&](const std::string& entry) {
    return entry.size() > name.size() && NameOf(entry) == name;
  });
}

std::vector<Variable> PlaceVariables(const StartRound& place, LocalRank local_rank,
                                     const WorkerSurroundings& s) {
  std::string rank = std::to_string(place.first_rank.value + local_rank.value);
  std::string world_size = std::to_string(place.world_size);
  // One role per job, so a role's ranks are the job's.
  return {
      {env::kLocalRank, std::to_string(s.gpus.empty() ? local_rank.value : 0)},
      {env::kRank, rank},
      {env::kGroupRank, std::to_string(place.group_rank.value)},
      {env::kRoleRank, rank},
      {env::kWorldSize, world_size},
      {env::kGroupWorldSize, std::to_string(place.group_world_size)},
      {env::kRoleWorldSize, world_size},
      {env::kMasterAddr, place.master_address},
      {env::kMasterPort, std::to_string(place.master_port)},
      {env::kRestartCount, std::to_string(place.attempt)},
  };
}

std::vector<Variable> CommonVariables(const WorkerSurroundings& s) {
  std::vector<Variable> common = {
      {env::kRoleName, s.role},
      {env::kLocalWorldSize, std::to_string(s.worker_count)},
      {env::kMaxRestarts, std::to_string(s.max_restarts)},
      {env::kRunId, s.run_id},
      {env::kSignalsToHandle, s.stop_signals},
      {env::kUseAgentStore, s.has_agent_store ? "True" : "False"},
      {env::kAgentSocket, s.agent_socket},
  };
  if (s.stack_signal > 0) common.push_back({env::kStackSignal, std::to_string(s.stack_signal)});
  if (s.omp_threads > 0) common.push_back({env::kOmpNumThreads, std::to_string(s.omp_threads)});
  if (!IsSet(s.inherited, env::kNcclAsyncErrorHandling)) {
    common.push_back({env::kNcclAsyncErrorHandling, "1"});
  }
  return common;
}

// `ours` in place of what was inherited under their names; nothing under those of `dropped`.
std::vector<std::string> Merge(const std::vector<std::string>& inherited,
                               const std::vector<Variable>& ours,
                               std::vector<std::string> dropped) {
  for (const Variable& v : ours) dropped.push_back(v.name);
  std::vector<std::string> environment;
  environment.reserve(inherited.size() + ours.size());
  for (const std::string& entry : inherited) {
    bool is_dropped = std::find(dropped.begin(), dropped.end(), NameOf(entry)) != dropped.end();
    if (!is_dropped) environment.push_back(entry);
  }
  for (const Variable& v : ours) environment.push_back(v.name + "=" + v.value);
  return environment;
}

}  // namespace

std::string WorkerIdOf(const Incarnation& incarnation, RoundId round, LocalRank local_rank) {
  return incarnation.ToHex() + "/" + std::to_string(round.value) + "/" +
         std::to_string(local_rank.value);
}

std::vector<std::string> CommonEnvironment(const WorkerSurroundings& surroundings) {
  std::vector<std::string> dropped;
  for (const Variable& v : PlaceVariables(StartRound(), LocalRank(), surroundings)) {
    dropped.push_back(v.name);
  }
  return Merge(surroundings.inherited, CommonVariables(surroundings), std::move(dropped));
}

std::vector<std::string> WorkerEnvironment(const StartRound& place, LocalRank local_rank,
                                           const std::string& error_file,
                                           const WorkerSurroundings& surroundings) {
  const WorkerSurroundings& s = surroundings;
  std::vector<Variable> ours = PlaceVariables(place, local_rank, s);
  ours.push_back({env::kErrorFile, error_file});
  ours.push_back({env::kWorkerId, WorkerIdOf(s.incarnation, place.world.round, local_rank)});
  ours.push_back({env::kRound, std::to_string(place.world.round.value)});
  ours.push_back({env::kWorldId, place.world.id.ToHex()});
  ours.push_back({env::kRestartsCharged, std::to_string(place.restarts_charged)});
  std::vector<std::string> dropped;
  if (place.resume) {
    ours.push_back({env::kResumeStep, std::to_string(place.resume->step)});
    ours.push_back({env::kResumeDir, place.resume->directory});
  } else {
    dropped = {env::kResumeStep, env::kResumeDir};
  }
  if (s.console_columns > 0) {
    ours.push_back({env::kConsoleColumns, std::to_string(s.console_columns)});
  } else {
    dropped.push_back(env::kConsoleColumns);
  }
  auto index = static_cast<size_t>(local_rank.value);
  if (index < s.gpus.size()) ours.push_back({env::kVisibleGpus, s.gpus[index]});
  if (s.stack_signal == 0) dropped.emplace_back(env::kStackSignal);
  for (Variable& common : CommonVariables(s)) ours.push_back(std::move(common));
  return Merge(s.inherited, ours, std::move(dropped));
}

}  // namespace muster::agent
