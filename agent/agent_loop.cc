#include "agent/agent_loop.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "agent/console_width.h"
#include "agent/core/start_failure.h"
#include "agent/core/worker_environment.h"
#include "agent/error_file.h"
#include "agent/free_port.h"
#include "agent/output_prefix.h"
#include "agent/process/program_file.h"
#include "base/entropy.h"

namespace muster::agent {
namespace {

// Until what ended workers wrote must have been shown; a stuck console costs no more.
constexpr Duration kOutputPatience = std::chrono::seconds(1);

bool IsHopeless(absl::StatusCode code) {
  return code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kUnimplemented ||
         code == absl::StatusCode::kInternal;
}

}  // namespace

AgentLoop::AgentLoop(const AgentSettings* settings, const Clock* clock)
    : settings_(*settings), clock_(*clock) {}

Verdict AgentLoop::Run(Parts parts) {
  parts_ = parts;
  machine_.emplace(settings_.core, base::FreshId<Incarnation>(), clock_.Now());
  PerformAll(machine_->Start());
  while (!verdict_) {
    Instant next = machine_->NextWakeup();
    Duration most = next.IsNever() ? Duration::max() : next - clock_.Now();
    if (std::function<void()> task = tasks_.Take(most)) {
      task();
    } else {
      Step(TimePassed{});
    }
  }
  return *std::move(verdict_);
}

void AgentLoop::Step(const AgentEvent& event) {
  if (verdict_) return;
  StepInput input{.now = clock_.Now(), .fresh_incarnation = base::FreshId<Incarnation>()};
  PerformAll(machine_->Step(input, event));
}

void AgentLoop::PerformAll(std::vector<AgentEffect> effects) {
  for (const AgentEffect& effect : effects) {
    std::visit([this](const auto& e) { Perform(e); }, effect);
  }
}

// ---- events --------------------------------------------------------------------------------

void AgentLoop::RequestStop(int signal) {
  tasks_.Post([this, signal] { Step(StopRequested{.signal = signal}); });
}

void AgentLoop::ForwardSignal(int signal) {
  tasks_.Post([this, signal] { parts_.runner->Signal(signal); });
}

void AgentLoop::OnConnected(uint64_t connection) {
  tasks_.Post([this, connection] {
    if (connection == connection_) Step(RendezvousConnected{});
  });
}

void AgentLoop::OnMessage(uint64_t connection, RendezvousMessage message) {
  tasks_.Post([this, connection, message = std::move(message)] {
    if (connection == connection_) Step(RendezvousSaid{message});
  });
}

void AgentLoop::OnDisconnected(uint64_t connection, absl::Status why) {
  tasks_.Post([this, connection, why = std::move(why)] {
    if (connection != connection_) return;
    Step(RendezvousDisconnected{.why = std::string(why.message()),
                                .is_hopeless = IsHopeless(why.code()),
                                .is_refused = rendezvous::IsRefused(why)});
  });
}

void AgentLoop::OnWorkerStarted(RoundId round, LocalRank local_rank, int64_t pid) {
  tasks_.Post([this, round, local_rank, pid] {
    Step(WorkerStarted{.round = round, .local_rank = local_rank, .pid = pid});
  });
}

void AgentLoop::OnWorkerFailedToStart(RoundId round, LocalRank local_rank, int error) {
  tasks_.Post([this, round, local_rank, error] {
    if (round != place_.world.round) return;
    Step(WorkerEnded{
        .round = round, .local_rank = local_rank, .failure = FailureToStart(local_rank, error)});
  });
}

void AgentLoop::OnWorkerExited(RoundId round, LocalRank local_rank, int64_t pid, WorkerExit exit) {
  tasks_.Post([this, round, local_rank, pid, exit] {
    if (round != place_.world.round) return;
    Step(WorkerEnded{
        .round = round, .local_rank = local_rank, .failure = FailureOf(local_rank, pid, exit)});
  });
}

void AgentLoop::OnGroupGone(RoundId round, std::vector<int64_t> unkillable) {
  tasks_.Post([this, round, count = static_cast<int>(unkillable.size())] {
    FinishOutput(round);
    Step(GroupGone{.round = round, .unkillable = count});
  });
}

void AgentLoop::OnGuardianLost(std::string why) {
  tasks_.Post([this, why = std::move(why)] { Step(GuardianLost{.why = why}); });
}

void AgentLoop::OnShardReported(ShardReport report) {
  tasks_.Post([this, report = std::move(report)] { Step(WorkerReportedShard{report}); });
}

void AgentLoop::OnCommitPublished(CommitDone done) {
  tasks_.Post([this, done = std::move(done)] { Step(WorkerCommitted{done}); });
}

// ---- effects -------------------------------------------------------------------------------

void AgentLoop::Perform(const Connect&) { connection_ = parts_.client->Connect(); }

void AgentLoop::Perform(const Disconnect&) {
  parts_.client->Disconnect();
  connection_ = 0;
}

void AgentLoop::Perform(const SendToRendezvous& send) {
  AgentMessage message = send.message;
  if (auto* attach = std::get_if<Attach>(&message)) {
    attach->candidate_port = FindFreePort();
  } else if (auto* done = std::get_if<StopDone>(&message)) {
    done->candidate_port = FindFreePort();
  }
  parts_.client->Send(message);
}

void AgentLoop::Perform(const SpawnGroup& spawn) {
  place_ = spawn.place;
  first_error_file_.clear();
  const Attach& node = settings_.core.attach;
  WorkerSurroundings surroundings{.run_id = node.terms.run_id,
                                  .role = settings_.role,
                                  .worker_count = node.worker_count,
                                  .max_restarts = node.terms.max_restarts,
                                  .incarnation = machine_->incarnation(),
                                  .agent_socket = parts_.service->socket_name(),
                                  .inherited = settings_.environment};
  parts_.layout->MakeAttempt(place_.attempt, node.worker_count);

  WorkerService::Round round;
  round.scope = {
      .run_id = node.terms.run_id, .incarnation = machine_->incarnation(), .world = place_.world};
  const int console_columns = ConsoleColumns();
  std::vector<WorkerOutput> outputs;
  std::vector<WorkerCommand> commands;
  for (int i = 0; i < node.worker_count; ++i) {
    LocalRank local_rank(i);
    Rank rank(place_.first_rank.value + i);
    std::string id = WorkerIdOf(machine_->incarnation(), place_.world.round, local_rank);
    round.welcomes[id] = {.world = place_.world,
                          .key = place_.key,
                          .rank = rank,
                          .world_size = place_.world_size,
                          .local_rank = local_rank,
                          .local_world_size = node.worker_count,
                          .address = node.address,
                          .attempt = place_.attempt,
                          .restarts_charged = place_.restarts_charged,
                          .resume = place_.resume};
    outputs.push_back(OutputOf(local_rank, rank));
    surroundings.console_columns = outputs.back().show_stdout ? console_columns : 0;
    WorkerCommand command;
    command.local_rank = local_rank;
    command.rank = rank;
    command.argv = settings_.argv;
    command.environment = WorkerEnvironment(
        place_, local_rank, parts_.layout->ErrorFile(place_.attempt, local_rank), surroundings);
    command.worker_id = id;
    commands.push_back(std::move(command));
  }
  parts_.service->OpenRound(std::move(round));
  std::vector<WorkerPipes> pipes = parts_.pump->Open(place_.world.round, std::move(outputs));
  if (RefuseWithoutPipes(pipes)) return;
  for (size_t i = 0; i < pipes.size() && i < commands.size(); ++i) {
    commands[i].stdout_fd = pipes[i].stdout_fd;
    commands[i].stderr_fd = pipes[i].stderr_fd;
  }
  parts_.runner->Spawn(place_.world.round, std::move(commands));
}

// Says of the first worker without pipes that it can't be started. None is started then: they would
// all be stopped again.
bool AgentLoop::RefuseWithoutPipes(const std::vector<WorkerPipes>& pipes) {
  auto without = std::ranges::find_if(pipes, [](const WorkerPipes& p) { return p.error != 0; });
  if (without == pipes.end()) return false;
  for (const WorkerPipes& ends : pipes) {
    if (ends.error != 0) continue;
    close(ends.stdout_fd);
    close(ends.stderr_fd);
  }
  OnWorkerFailedToStart(place_.world.round, without->local_rank, without->error);
  return true;
}

void AgentLoop::Perform(const StopGroup& stop) {
  parts_.runner->Stop(stop.round, {.first_signal = stop.first_signal, .grace = stop.grace});
}

void AgentLoop::Perform(const AbortCollectives& abort) {
  parts_.service->Abort(abort.world, abort.culprit, abort.reason);
}

void AgentLoop::Perform(const RenewDeadline& renew) {
  parts_.runner->RenewDeadline(renew.deadline);
}

void AgentLoop::Perform(const AnswerCommit& answer) {
  parts_.service->AnswerCommit({.world = answer.world,
                                .rank = answer.rank,
                                .commit = answer.commit,
                                .is_granted = answer.is_granted,
                                .reason = answer.reason});
}

void AgentLoop::Perform(const Show& show) { parts_.pump->Say("muster: " + show.text); }

void AgentLoop::Perform(const End& end) { verdict_ = end.verdict; }

// ---- facts about workers -------------------------------------------------------------------

WorkerFailure AgentLoop::FailureOf(LocalRank local_rank, int64_t pid, WorkerExit exit) {
  WorkerFailure failure;
  failure.rank = Rank(place_.first_rank.value + local_rank.value);
  failure.local_rank = local_rank;
  failure.node_name = settings_.core.attach.node_name;
  failure.pid = pid;
  failure.exit = exit;
  failure.wall_time_s = time(nullptr);
  if (exit.Succeeded()) return failure;
  std::string error_file = parts_.layout->ErrorFile(place_.attempt, local_rank);
  if (std::optional<std::string> message = ReadErrorFile(error_file)) {
    failure.message = *std::move(message);
    if (first_error_file_.empty()) first_error_file_ = error_file;
    // A private folder is gone by the time somebody reads this.
    if (!parts_.layout->kept_folder().empty()) failure.error_file = error_file;
  }
  StreamChoice choice = ChoiceOf(local_rank);
  if (choice.redirect_stderr || choice.tee_stderr) {
    failure.log_path = parts_.layout->StderrFile(place_.attempt, local_rank);
  }
  failure.stderr_tail = parts_.pump->StderrTail(local_rank);
  return failure;
}

WorkerFailure AgentLoop::FailureToStart(LocalRank local_rank, int error) {
  WorkerFailure failure;
  failure.rank = Rank(place_.first_rank.value + local_rank.value);
  failure.local_rank = local_rank;
  failure.node_name = settings_.core.attach.node_name;
  failure.wall_time_s = time(nullptr);
  failure.failed_to_start = true;
  const std::string program = settings_.argv.empty() ? "" : settings_.argv[0];
  std::optional<ProgramFlaw> flaw;
  // Without a slash it was looked for along PATH, and its interpreter before the start.
  if (program.find('/') != std::string::npos) flaw = FlawOfProgram(program);
  bool explains = flaw.has_value() && flaw->error == error;
  StartFailure why = ExplainStartFailure(program, error, explains ? flaw->text : "");
  failure.exit.code = why.exit_code;
  failure.message = std::move(why.message);
  return failure;
}

void AgentLoop::FinishOutput(RoundId round) {
  for (const LostOutput& lost : parts_.pump->Finish(round, kOutputPatience)) {
    parts_.pump->Say("muster: " + std::to_string(lost.bytes) + " bytes of output are missing in " +
                     lost.place + " (" + lost.reason + ")");
  }
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
  if (is_prefixed) {
    output.prefix = OutputPrefix(settings_.environment, settings_.role, local_rank, rank);
  }
  if (choice.redirect_stdout || choice.tee_stdout) {
    output.stdout_file = parts_.layout->StdoutFile(place_.attempt, local_rank);
    output.show_stdout = choice.tee_stdout;
  }
  if (choice.redirect_stderr || choice.tee_stderr) {
    output.stderr_file = parts_.layout->StderrFile(place_.attempt, local_rank);
    output.show_stderr = choice.tee_stderr;
  }
  return output;
}

}  // namespace muster::agent
