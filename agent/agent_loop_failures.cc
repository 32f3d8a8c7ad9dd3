// What is known of a worker that failed or can't be started: the half of AgentLoop that looks it
// up.
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "agent/agent_loop.h"
#include "agent/core/hang_events.h"
#include "agent/core/start_failure.h"
#include "agent/core_file.h"
#include "agent/error_file.h"
#include "agent/process/program_file.h"

namespace muster::agent {
namespace {

// How long the report of a failure waits for the worker's last words and its error file.
constexpr Duration kLastWordsPatience = std::chrono::milliseconds(500);

void CloseAll(const std::vector<WorkerPipes>& pipes) {
  for (const WorkerPipes& ends : pipes) {
    if (ends.error != 0) continue;
    close(ends.stdout_fd);
    close(ends.stderr_fd);
  }
}

}  // namespace

WorkerFailure AgentLoop::FailureOf(LocalRank local_rank, int64_t pid, WorkerExit exit) {
  WorkerFailure failure;
  failure.rank = Rank(place_.first_rank.value + local_rank.value);
  failure.local_rank = local_rank;
  failure.node_name = settings_.core.attach.node_name;
  failure.pid = pid;
  failure.exit = exit;
  failure.wall_time_s = time(nullptr);
  if (exit.Succeeded()) return failure;
  StreamChoice choice = ChoiceOf(local_rank);
  if (choice.redirect_stderr || choice.tee_stderr) {
    failure.log_path = parts_.layout->StderrFile(place_.attempt, local_rank);
  }
  return failure;
}

void AgentLoop::LookUpWhy(WorkerEnded ended) {
  LocalRank local_rank = ended.local_rank;
  KillEvidence kill = memory_.Explain(local_rank, ended.failure.pid, ended.failure.exit);
  ended.failure.out_of_memory = kill.out_of_memory;
  ended.failure.evidence = std::move(kill.text);
  const WorkerFailure failure = ended.failure;
  std::string error_file = parts_.layout->ErrorFile(place_.attempt, local_rank);
  int facts = 1 + (error_file.empty() ? 0 : 1) + (failure.exit.dumped_core ? 1 : 0);
  uint64_t number = ordered_.Add(std::move(ended), facts, clock_.Now() + kLastWordsPatience);
  parts_.pump->StderrTail(local_rank, [this, tasks = tasks_, number](std::string tail) {
    tasks->Post([this, number, tail = std::move(tail)] {
      ordered_.Complete(number, [&](AgentEvent& event) {
        std::get<WorkerEnded>(event).failure.stderr_tail = tail;
      });
    });
  });
  if (failure.exit.dumped_core) LookUpCore(number, failure);
  if (error_file.empty()) return;
  // A private folder is gone by the time somebody reads this.
  bool is_kept = !parts_.layout->kept_folder().empty();
  bool is_asked = files_.Offer(0, [this, tasks = tasks_, number, error_file, is_kept] {
    tasks->Post([this, number, error_file, is_kept, record = ReadErrorFile(error_file)] {
      ordered_.Complete(number, [&](AgentEvent& event) {
        if (!record) return;
        WorkerFailure& found = std::get<WorkerEnded>(event).failure;
        found.message = record->text;
        if (is_kept) found.error_file = error_file;
        if (!first_error_.empty()) return;
        // As torchrun counts: minus the signal.
        const int code = found.exit.signal != 0 ? -found.exit.signal : found.exit.code;
        first_error_ = WithErrorCode(record->raw, code);
      });
    });
  });
  if (!is_asked) ordered_.Complete(number, [](AgentEvent&) {});
}

void AgentLoop::LookUpCore(uint64_t number, const WorkerFailure& failure) {
  DumpQuestion question{.pid = failure.pid,
                        .signal = failure.exit.signal,
                        .not_before_s = spawned_at_s_,
                        .folder = {}};
  std::error_code none;
  question.folder = std::filesystem::current_path(none).string();
  bool is_asked = files_.Offer(0, [this, tasks = tasks_, number, question] {
    tasks->Post([this, number, answer = FindCoreFile(question)] {
      ordered_.Complete(number, [&](AgentEvent& event) {
        WorkerFailure& found = std::get<WorkerEnded>(event).failure;
        found.core_file = answer.path;
        if (!answer.remark.empty() && !found.evidence.empty()) found.evidence += "; ";
        found.evidence += answer.remark;
      });
    });
  });
  if (!is_asked) ordered_.Complete(number, [](AgentEvent&) {});
}

WorkerFailure AgentLoop::FailureToStart(LocalRank local_rank, int error) {
  WorkerFailure failure;
  failure.rank = Rank(place_.first_rank.value + local_rank.value);
  failure.local_rank = local_rank;
  failure.node_name = settings_.core.attach.node_name;
  failure.wall_time_s = time(nullptr);
  failure.failed_to_start = true;
  StartFailure why = ExplainStartFailure(program(), error, "");
  failure.exit.code = why.exit_code;
  failure.message = std::move(why.message);
  return failure;
}

void AgentLoop::LookUpFlaw(WorkerEnded ended, int error) {
  // Without a slash it was looked for along PATH, and its interpreter before the start.
  bool is_path = program().find('/') != std::string::npos;
  uint64_t number =
      ordered_.Add(std::move(ended), is_path ? 1 : 0, clock_.Now() + kLastWordsPatience);
  if (!is_path) return;
  bool is_asked = files_.Offer(0, [this, tasks = tasks_, number, error, path = program()] {
    tasks->Post([this, number, error, path, flaw = FlawOfProgram(path)] {
      ordered_.Complete(number, [&](AgentEvent& event) {
        if (!flaw || flaw->error != error) return;
        std::get<WorkerEnded>(event).failure.message =
            ExplainStartFailure(path, error, flaw->text).message;
      });
    });
  });
  if (!is_asked) ordered_.Complete(number, [](AgentEvent&) {});
}

// ---- hung workers --------------------------------------------------------------------------

void AgentLoop::Perform(const LookAtHungWorker& look) {
  auto pid = pids_.find(look.local_rank);
  if (pid == pids_.end()) return;
  WorkerFailure failure = FailureOf(look.local_rank, pid->second, {.signal = SIGKILL});
  failure.hung = true;
  failure.only_waited = look.only_waited;
  failure.evidence = look.evidence;
  // What it looks like, its last words, and the file: they come one after the other.
  constexpr int kFacts = 3;
  uint64_t number = ordered_.Add(
      WorkerEnded{.round = look.round, .local_rank = look.local_rank, .failure = failure}, kFacts,
      clock_.Now() + kHungLookPatience);
  if (!looks_) looks_.emplace();
  bool is_asked = looks_->Offer(
      0, [this, tasks = tasks_, number, pid = failure.pid, signal = settings_.stack_signal] {
        tasks->Post([this, number, look = LookAtHungProcesses(pid, signal)] {
          TakeHungLook(number, look);
        });
      });
  if (!is_asked) TakeHungLook(number, {});
}

void AgentLoop::TakeHungLook(uint64_t number, const HungLook& look) {
  LocalRank local_rank;
  ordered_.Complete(number, [&](AgentEvent& event) {
    WorkerFailure& failure = std::get<WorkerEnded>(event).failure;
    local_rank = failure.local_rank;
    if (!look.state.empty()) failure.evidence += "; its main thread " + look.state;
  });
  parts_.pump->StderrTail(local_rank,
                          [this, tasks = tasks_, number, stacks = look.stacks](std::string tail) {
                            tasks->Post([this, number, stacks, tail = std::move(tail)] {
                              ordered_.Complete(number, [&](AgentEvent& event) {
                                std::get<WorkerEnded>(event).failure.stderr_tail = tail;
                              });
                              KeepStacks(number, stacks + "last lines of its stderr:\n" + tail);
                            });
                          });
}

void AgentLoop::KeepStacks(uint64_t number, const std::string& stacks) {
  std::string path;
  ordered_.Change(number, [&](AgentEvent& event) {
    path =
        parts_.layout->StacksFile(place_.attempt, std::get<WorkerEnded>(event).failure.local_rank);
  });
  bool is_asked =
      !path.empty() && files_.Offer(stacks.size(), [this, tasks = tasks_, number, path, stacks] {
        bool is_kept = (std::ofstream(path) << stacks << std::flush).good();
        tasks->Post([this, number, path, is_kept] {
          ordered_.Complete(number, [&](AgentEvent& event) {
            if (is_kept) std::get<WorkerEnded>(event).failure.stacks_file = path;
          });
        });
      });
  if (!is_asked) ordered_.Complete(number, [](AgentEvent&) {});
}

// Says of the first worker without pipes that it can't be started. None is started then: they would
// all be stopped again.
bool AgentLoop::RefuseWithoutPipes(const std::vector<WorkerPipes>& pipes) {
  auto without = std::ranges::find_if(pipes, [](const WorkerPipes& p) { return p.error != 0; });
  if (without == pipes.end()) return false;
  CloseAll(pipes);
  OnWorkerFailedToStart(place_.world.round, without->local_rank, without->error);
  return true;
}

// Opens the round's store on the node of group rank 0, or says that its first worker can't be
// started.
bool AgentLoop::RefuseWithoutStore(const std::vector<WorkerPipes>& pipes) {
  if (!store_) return false;
  if (place_.group_rank != GroupRank(0)) {
    store_->Close();
    return false;
  }
  const int error = store_->Open(address_, place_.master_port);
  if (error == 0) return false;
  CloseAll(pipes);
  WorkerFailure failure = FailureToStart(LocalRank(0), error);
  StartFailure why = ExplainStoreFailure(place_.master_port, error);
  failure.exit.code = why.exit_code;
  failure.message = std::move(why.message);
  ordered_.Add(WorkerEnded{.round = place_.world.round,
                           .local_rank = LocalRank(0),
                           .failure = std::move(failure),
                           .at = clock_.Now()},
               0, clock_.Now());
  return true;
}

}  // namespace muster::agent
