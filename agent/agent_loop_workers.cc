// What each worker of a round is given: its command, its environment, and where its output goes.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/agent_loop.h"
#include "agent/console_width.h"
#include "agent/core/worker_environment.h"
#include "agent/output_prefix.h"

namespace muster::agent {
namespace {

// torchrun's macro in the arguments of the program.
void NameLocalRank(LocalRank local_rank, std::vector<std::string>* argv) {
  constexpr std::string_view kMacro = "${local_rank}";
  const std::string number = std::to_string(local_rank.value);
  for (std::string& word : *argv) {
    for (size_t at = word.find(kMacro); at != std::string::npos;
         at = word.find(kMacro, at + number.size())) {
      word.replace(at, kMacro.size(), number);
    }
  }
}

}  // namespace

WorkerSurroundings AgentLoop::Surroundings() const {
  const Attach& node = settings_.core.attach;
  const bool is_watched = settings_.core.hang_timeout > Duration(0);
  return {.run_id = node.terms.run_id,
          .role = settings_.role,
          .worker_count = node.worker_count,
          .max_restarts = node.terms.max_restarts,
          .incarnation = machine_->incarnation(),
          .agent_socket = parts_.service->socket_name(),
          .stack_signal = is_watched ? settings_.stack_signal : 0,
          .omp_threads = settings_.omp_threads,
          .gpus = settings_.worker_gpus,
          .stop_signals = settings_.stop_signals,
          .has_agent_store = settings_.master_store != MasterStore::kWorker,
          .inherited = settings_.environment};
}

std::vector<WorkerCommand> AgentLoop::Commands(const std::vector<WorkerOutput>& outputs) const {
  const Attach& node = settings_.core.attach;
  WorkerSurroundings surroundings = Surroundings();
  const int console_columns = ConsoleColumns();
  std::vector<WorkerCommand> commands;
  for (const WorkerOutput& output : outputs) {
    surroundings.console_columns = output.show_stdout ? console_columns : 0;
    WorkerCommand& command = commands.emplace_back();
    command.local_rank = output.local_rank;
    command.rank = Rank(place_.first_rank.value + output.local_rank.value);
    command.argv = settings_.argv;
    if (settings_.names_local_rank) NameLocalRank(output.local_rank, &command.argv);
    auto index = static_cast<size_t>(output.local_rank.value);
    if (index < settings_.worker_cpus.size()) command.cpus = settings_.worker_cpus[index];
    const bool is_alone = node.terms.max_nodes == 1 && node.worker_count == 1;
    command.gets_input = GetsInput(settings_.input, command.rank, is_alone);
    command.environment = WorkerEnvironment(
        place_, output.local_rank, parts_.layout->ErrorFile(place_.attempt, output.local_rank),
        surroundings);
    command.worker_id = WorkerIdOf(machine_->incarnation(), place_.world.round, output.local_rank);
  }
  return commands;
}

StreamChoice AgentLoop::ChoiceOf(LocalRank local_rank) const {
  auto index = static_cast<size_t>(local_rank.value);
  return index < settings_.streams.size() ? settings_.streams[index] : StreamChoice{};
}

WorkerOutput AgentLoop::OutputOf(LocalRank local_rank, Rank rank) const {
  StreamChoice choice = ChoiceOf(local_rank);
  WorkerOutput output;
  output.local_rank = local_rank;
  bool is_prefixed =
      settings_.prefix == PrefixMode::kAlways ||
      (settings_.prefix == PrefixMode::kAuto && settings_.core.attach.worker_count > 1);
  const std::string prefix =
      OutputPrefix(settings_.prefix_pattern, {.role = settings_.role,
                                              .local_rank = local_rank,
                                              .rank = rank,
                                              .host = settings_.core.attach.node_name});
  const bool is_automatic = settings_.prefix == PrefixMode::kAuto;
  if (is_prefixed || (is_automatic && choice.tee_stdout)) output.stdout_prefix = prefix;
  if (is_prefixed || (is_automatic && choice.tee_stderr)) output.stderr_prefix = prefix;
  output.filtered_prefix = prefix;
  output.show_stdout = output.show_stderr = choice.is_shown;
  if (choice.redirect_stdout || choice.tee_stdout) {
    output.stdout_file = parts_.layout->StdoutFile(place_.attempt, local_rank);
    output.show_stdout = choice.tee_stdout && choice.is_shown;
  }
  if (choice.redirect_stderr || choice.tee_stderr) {
    output.stderr_file = parts_.layout->StderrFile(place_.attempt, local_rank);
    output.show_stderr = choice.tee_stderr && choice.is_shown;
  }
  // As in torchrun, whose console and gathered lines have one source.
  if (choice.tee_stdout && choice.is_shown) {
    output.filtered_stdout = parts_.layout->FilteredStdoutFile(place_.attempt);
  }
  if (choice.tee_stderr && choice.is_shown) {
    output.filtered_stderr = parts_.layout->FilteredStderrFile(place_.attempt);
  }
  return output;
}

}  // namespace muster::agent
