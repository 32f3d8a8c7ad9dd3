#include "launcher/run_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/agent.h"
#include "agent/guardian/guardian.h"
#include "agent/process/guardian_runner.h"
#include "base/env.h"
#include "base/mutex.h"
#include "base/signal_name.h"
#include "base/version.h"
#include "launcher/descriptor_need.h"
#include "launcher/exit_codes.h"
#include "launcher/failed_start.h"
#include "launcher/job_settings.h"
#include "launcher/launch_plan.h"
#include "launcher/log_setup.h"
#include "launcher/machine_facts.h"
#include "launcher/meeting_place.h"
#include "launcher/parse_run_options.h"
#include "launcher/preemption_watch.h"
#include "launcher/program_check.h"
#include "launcher/result_file.h"
#include "launcher/run_options.h"
#include "launcher/say.h"
#include "launcher/scheduler_place.h"
#include "launcher/shared_store.h"
#include "launcher/ssh/ssh_run.h"
#include "launcher/stop_signals.h"
#include "launcher/text.h"
#include "rendezvous/client/grpc_rendezvous_client.h"

namespace muster::launcher {
namespace {

using agent::Agent;
using agent::AgentSettings;
using rendezvous::RendezvousServer;

// Under --hosts signals come from the launching side, which says what they do.
bool ExplainsSignals() { return RecordMark().empty(); }

// Who has to be told of a signal, which changes as the process gets on.
class StopTarget {
 public:
  // Told when a signal ends this process before an agent was there to do it.
  using EndedByUser = std::function<void(int exit_code, const std::string& reason)>;
  StopTarget(const RunOptions& options, EndedByUser on_early_end)
      : preemption_signal_(options.preemption_signal),
        stop_signals_(options.stop_signals),
        on_early_end_(std::move(on_early_end)) {}

  void SetParts(Agent* agent, RendezvousServer* server) MUSTER_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    agent_ = agent;
    server_ = server;
  }

  // True if this node went because it was told that it will be taken away, or drained. The SIGTERM
  // that often follows that isn't one more order.
  bool AgentIsDone(const Verdict& verdict) MUSTER_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    agent_is_done_ = true;
    may_be_followed_ = verdict.exit_code == kExitRunAgain && count_ == 0;
    return may_be_followed_;
  }

  // Returns after `most`, or at once when there was a signal that stops the job.
  void AwaitSignal(std::chrono::seconds most) MUSTER_EXCLUDES(mutex_) {
    const auto end = std::chrono::steady_clock::now() + most;
    base::MutexLock lock(mutex_);
    while (count_ == 0 && signalled_.wait_until(mutex_, end) != std::cv_status::timeout) {
    }
  }

  // This node will be taken away: as good as SIGTERM, however often it is said.
  void OnNotice(const std::string& notice) MUSTER_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    if (agent_is_done_) return;
    if (agent_ == nullptr) {
      const std::string reason = Cat("stopped before the job had begun by ", notice);
      Say(reason);
      on_early_end_(128 + SIGTERM, reason);
      _exit(128 + SIGTERM);
    }
    agent_->RequestStop(SIGTERM, notice);
  }

  void OnSignal(int number) MUSTER_EXCLUDES(mutex_) {
    if (number == preemption_signal_) {
      return OnNotice(Cat("preemption signal ", SignalName(number)));
    }
    base::MutexLock lock(mutex_);
    if (std::ranges::find(stop_signals_, number) == stop_signals_.end()) {
      if (agent_ == nullptr) return;
      if (number != SIGTSTP) return agent_->ForwardSignal(number);
      return agent_->Say(
          "Ctrl-Z (SIGTSTP) is not obeyed: the workers of a launcher that stands still are killed "
          "when its lease is over; end the job with Ctrl-C, or start it with & behind the command");
    }
    ++count_;
    signalled_.notify_all();
    std::string reason = Cat("stopped by ", SignalName(number));
    if (agent_ == nullptr) {
      // Nothing was started that the guardian wouldn't end: whatever call blocks, it is over.
      Say(Cat(reason, " before the job had begun"));
      on_early_end_(128 + number, Cat(reason, " before the job had begun"));
      _exit(128 + number);
    }
    agent_->RequestStop(number);
    if (number == SIGTERM && std::exchange(may_be_followed_, false)) {
      Say(
          Cat("SIGTERM after this node has left: it hosts the rendezvous and stays until the other "
              "nodes are done",
              ExplainsSignals() ? "; another signal ends the job on all of them" : ""));
      return;
    }
    bool is_urgent = agent_is_done_ || count_ > 1;
    if (server_ != nullptr && is_urgent) {
      server_->HostStopping(Cat("the rendezvous was ", reason, " on its host"), 128 + number);
    }
    // The job's other nodes were told; who doesn't go now isn't waited for.
    if (agent_is_done_ && count_ > 2) _exit(128 + number);
  }

 private:
  // Announces a preemption; 0: none does.
  const int preemption_signal_;
  // End the job; others are passed on to the workers.
  const std::vector<int> stop_signals_;
  const EndedByUser on_early_end_;
  base::Mutex mutex_;
  Agent* agent_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  RendezvousServer* server_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  bool agent_is_done_ MUSTER_GUARDED_BY(mutex_) = false;
  bool may_be_followed_ MUSTER_GUARDED_BY(mutex_) = false;
  int count_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::condition_variable_any signalled_;
};

// "/dev/null" is torchrun's way to say "no files".
std::optional<Problem> CheckLogs(const RunOptions& options) {
  if (options.log_dir.empty() || options.log_dir == "/dev/null") return std::nullopt;
  std::optional<std::string> wrong = CheckLogFolder(options.log_dir);
  return wrong.has_value() ? std::optional(Problem{kExitFolder, *wrong}) : std::nullopt;
}

std::optional<Problem> CheckResult(const RunOptions& options) {
  std::optional<std::string> wrong = CheckResultFile(options.result_file);
  return wrong.has_value() ? std::optional(Problem{kExitUsage, *wrong}) : std::nullopt;
}

// The agent of this node over the real world.
std::unique_ptr<Agent> MakeAgent(AgentSettings settings, const Endpoint& connect_to,
                                 const agent::GuardianLink& guardian) {
  // Lives as long as the runner, which is dropped before Agent::Run() returns. Shared, since the
  // two functions below are copied independently of each other.
  auto runner = std::make_shared<agent::GuardianRunner*>(nullptr);
  agent::AgentParts parts;
  parts.make_client = [connect_to](rendezvous::SessionObserver* observer) {
    rendezvous::GrpcRendezvousClientOptions options;
    options.host = connect_to.host;
    options.port = connect_to.port;
    return rendezvous::NewGrpcRendezvousClient(options, observer);
  };
  parts.make_runner = [guardian, runner](agent::ProcessObserver* observer) {
    auto made = std::make_unique<agent::GuardianRunner>(guardian, observer);
    *runner = made.get();
    return made;
  };
  parts.on_private_folder = [runner](const std::string& folder) {
    if (*runner != nullptr) (*runner)->RemoveAtEnd(folder);
  };
  return std::make_unique<Agent>(std::move(settings), std::move(parts));
}

// What is checked before anything is started. Fills `plan`.
std::optional<Problem> Prepare(const RunOptions& options, LaunchPlan& plan) {
  MachineFacts facts =
      LookUpMachine({.counts = options.workers.kind != WorkerCount::Kind::kNumber ||
                               options.threads.kind == ThreadChoice::Kind::kAuto,
                     .topology = options.numa_binding != NumaBinding::kNone});
  absl::StatusOr<LaunchPlan> made = MakeLaunchPlan(options, facts);
  if (!made.ok()) return Problem{kExitUsage, std::string(made.status().message())};
  plan = *std::move(made);
  std::optional<Problem> problem =
      CheckProgram({.argv = plan.argv,
                    .is_python = !options.no_python,
                    .is_script = !options.no_python && !options.is_module,
                    .search_path = std::getenv("PATH")});
  if (!problem.has_value()) problem = CheckLogs(options);
  return problem.has_value() ? problem : CheckResult(options);
}

// An end that no agent told of.
EndedJob EndedEarly(const RunOptions& options, const LaunchPlan& plan, int exit_code,
                    std::string reason) {
  EndedJob ended;
  ended.run_id = plan.terms.run_id;
  ended.node_name = NodeName(options);
  ended.verdict.exit_code = exit_code;
  ended.verdict.reason = std::move(reason);
  ended.ended_at_s = time(nullptr);
  return ended;
}

// Those who would wait for this node. Whatever else is to be done is done.
void TellOthersToo(const RunOptions& options, const LaunchPlan& plan, const std::string& reason) {
  TellOthers(plan, {.node_name = NodeName(options),
                    .reason = reason,
                    .say = [](const std::string& line) { Say(line); }});
}

EndedJob EndedWith(const AgentSettings& settings, const Verdict& verdict, const StartRound& place) {
  EndedJob ended;
  ended.run_id = settings.core.attach.terms.run_id;
  ended.node_name = settings.core.attach.node_name;
  ended.verdict = verdict;
  ended.world = place.world;
  ended.attempt = place.attempt;
  ended.world_size = place.world_size;
  ended.node_count = place.group_world_size;
  ended.ended_at_s = time(nullptr);
  return ended;
}

std::vector<int> TakenSignals(const RunOptions& options, const LaunchPlan& plan) {
  std::vector<int> taken = options.stop_signals;
  taken.push_back(SIGUSR1);
  taken.push_back(SIGUSR2);
  // The node would be lost.
  if (!plan.StandsAlone()) taken.push_back(SIGTSTP);
  return taken;
}

// Null where the plan has none. What it has to say goes to the agent, which never waits for a
// console; there is nothing to say before there is one.
std::unique_ptr<SharedStore> MakeSharedStore(const LaunchPlan& plan, std::atomic<Agent*>* speaker) {
  if (!plan.shares_port_with_store) return nullptr;
  return std::make_unique<SharedStore>([speaker](const std::string& line) {
    if (Agent* agent = *speaker) agent->Say(Cat("PyTorch's store ", line));
  });
}

// The agent of the node that hosts the rendezvous is done.
struct DoneHost {
  // Why its own job refused it; empty: it didn't.
  std::string refusal;
  bool was_noticed = false;
};

// Returns when no other node needs the rendezvous any more.
void StayAsHost(const DoneHost& host, RendezvousServer& server, StopTarget& target) {
  if (!host.refusal.empty()) {
    server.HostRefused(Cat("the node that hosts the rendezvous was refused: ", host.refusal),
                       kExitDisagree);
    // Others may be between two tries to reach it. If it went now they would wait for join_timeout,
    // and not be told why.
    constexpr auto kForLateNodes = std::chrono::seconds(5);
    Say(Cat("this node hosts the rendezvous and stays for ", kForLateNodes.count(),
            " s, to tell nodes that come late"));
    target.AwaitSignal(kForLateNodes);
  }
  // Other nodes may go on without this one, and each has to hear the verdict.
  constexpr auto kUnremarked = std::chrono::seconds(1);
  constexpr auto kAsLongAsItTakes = std::chrono::hours(24 * 365);
  if (server.WaitUntilIdle(kUnremarked)) return;
  constexpr char kStays[] =
      "this node hosts the rendezvous and stays until the other nodes are done";
  if (ExplainsSignals()) {
    Say(Cat(kStays, "; ",
            host.was_noticed ? "a SIGTERM may follow, and another signal" : "another signal",
            " ends the job on all of them"));
  } else {
    Say(kStays);
  }
  server.WaitUntilIdle(kAsLongAsItTakes);
}

int RunJob(const RunOptions& options, const LaunchPlan& plan, ResultFile& result) {
  // First of all: forking beside gRPC's threads is unsafe, and what workers inherit is fixed here.
  agent::GuardianLink guardian = agent::StartGuardian();
  if (guardian.pid < 0) {
    std::string problem =
        Cat("the guardian process can't be started: ", std::strerror(guardian.error));
    SayProblem(problem);
    result.Write(EndedEarly(options, plan, kExitOsError, problem));
    TellOthersToo(options, plan, problem);
    return kExitOsError;
  }
  // Its start has raised the limit.
  if (std::optional<std::string> shortage = TooFewDescriptors(options, plan, LookUpDescriptors())) {
    SayProblem(*shortage);
    result.Write(EndedEarly(options, plan, kExitOsError, *shortage));
    TellOthersToo(options, plan, *shortage);
    return kExitOsError;
  }
  StopTarget target(options, [&](int exit_code, const std::string& reason) {
    result.Write(EndedEarly(options, plan, exit_code, reason));
  });
  StopSignals signals(TakenSignals(options, plan));
  signals.Watch([&target](int number) { target.OnSignal(number); });
  std::unique_ptr<PreemptionWatch> watch;
  if (!options.preemption_file.empty()) {
    auto started = PreemptionWatch::Start(options.preemption_file, [&target, &options] {
      target.OnNotice(Cat("preemption notice ", options.preemption_file,
                          ": remove the file before the node is started again"));
    });
    if (!started.ok()) {
      const std::string problem(started.status().message());
      const int code = absl::IsFailedPrecondition(started.status()) ? 128 + SIGTERM : kExitUsage;
      SayProblem(problem);
      if (code != kExitUsage) result.Write(EndedEarly(options, plan, code, problem));
      TellOthersToo(options, plan, problem);
      return code;
    }
    watch = *std::move(started);
  }

  std::atomic<Agent*> speaker = nullptr;
  std::unique_ptr<SharedStore> store = MakeSharedStore(plan, &speaker);
  MeetingOptions meeting;
  meeting.store = store.get();
  meeting.is_one_of_hosts = !RecordMark().empty();
  meeting.lease = options.lease.value_or(plan.DefaultLease());
  meeting.reconnect_timeout = options.reconnect_timeout;
  meeting.checkpoint_patience = options.shutdown_timeout;
  meeting.patience = options.join_timeout;
  meeting.say = [](const std::string& line) { Say(line); };
  std::variant<MeetingPlace, MeetingFailure> found = FindMeetingPlace(plan, meeting);
  if (auto* failure = std::get_if<MeetingFailure>(&found)) {
    SayProblem(failure->text);
    result.Write(EndedEarly(options, plan, failure->exit_code, failure->text));
    return failure->exit_code;
  }
  auto& place = std::get<MeetingPlace>(found);
  const AgentSettings settings = JobSettings(options, plan, place);
  std::unique_ptr<Agent> agent = MakeAgent(settings, place.connect_to, guardian);
  target.SetParts(agent.get(), place.server.get());
  speaker = agent.get();
  Verdict verdict = agent->Run();
  const bool was_noticed = target.AgentIsDone(verdict);
  // At once: the rest may take as long as the other nodes do.
  result.Write(EndedWith(settings, verdict, agent->last_place()));
  if (place.server != nullptr) {
    const bool was_refused =
        verdict.exit_code == kExitDisagree && agent->last_place().world.round.value == 0;
    StayAsHost({.refusal = was_refused ? verdict.reason : "", .was_noticed = was_noticed},
               *place.server, target);
  }
  // The caller ends the process at once: taking gRPC down in order costs more than the job did.
  _exit(verdict.exit_code);
}

// Lets the batch system fill in what no flag says.
absl::Status AskScheduler(const GetEnv& get_env, RunOptions& options) {
  auto place = FindSchedulerPlace(get_env);
  if (!place.ok()) return place.status();
  if (!place->has_value()) return absl::OkStatus();
  absl::StatusOr<std::string> said = UseSchedulerPlace(**place, options);
  if (said.ok() && !said->empty()) Say(*said);
  return said.status();
}

}  // namespace

int RunCommand(std::span<const std::string> words) {
  if (const char* mark = std::getenv(env::kRecordMark)) {
    SayAsRecords(mark);
    unsetenv(env::kRecordMark);
  }
  auto get_env = [](const char* name) -> const char* { return std::getenv(name); };
  absl::StatusOr<RunOptions> options = ParseRunOptions(words, get_env);
  if (!options.ok()) {
    SayProblem(std::string(options.status().message()));
    return kExitUsage;
  }
  if (options->wants_help) return Print(RunHelp()) ? 0 : 1;
  if (options->wants_version) return Print(Cat("muster ", kVersion, "\n")) ? 0 : 1;
  if (options->ssh.is_asked()) return RunOverSsh(*options);
  if (absl::Status asked = AskScheduler(get_env, *options); !asked.ok()) {
    SayProblem(std::string(asked.message()));
    return kExitUsage;
  }
  SetUpLog(LogVolume::kWarnings);
  LaunchPlan plan;
  ResultFile result(options->result_file);
  if (std::optional<Problem> problem = Prepare(*options, plan)) {
    SayProblem(problem->text);
    // Whoever mistypes a flag looks at the screen.
    if (problem->exit_code != kExitUsage) {
      result.Write(EndedEarly(*options, plan, problem->exit_code, problem->text));
    }
    // Without a plan it isn't known where they are.
    if (!plan.argv.empty()) TellOthersToo(*options, plan, problem->text);
    return problem->exit_code;
  }
  for (const std::string& warning : plan.warnings) Say(warning);
  return RunJob(*options, plan, result);
}

}  // namespace muster::launcher
