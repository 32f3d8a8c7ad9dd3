#include "launcher/run_command.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/agent.h"
#include "agent/core/signal_name.h"
#include "agent/guardian/guardian.h"
#include "agent/process/guardian_runner.h"
#include "base/env.h"
#include "base/mutex.h"
#include "base/version.h"
#include "launcher/descriptor_need.h"
#include "launcher/exit_codes.h"
#include "launcher/launch_plan.h"
#include "launcher/log_setup.h"
#include "launcher/machine_facts.h"
#include "launcher/meeting_place.h"
#include "launcher/node_facts.h"
#include "launcher/preemption_watch.h"
#include "launcher/program_check.h"
#include "launcher/result_file.h"
#include "launcher/run_options.h"
#include "launcher/say.h"
#include "launcher/scheduler_place.h"
#include "launcher/shared_store.h"
#include "launcher/stop_signals.h"
#include "launcher/text.h"
#include "rendezvous/client/grpc_rendezvous_client.h"

namespace muster::launcher {
namespace {

using agent::Agent;
using agent::AgentSettings;
using rendezvous::RendezvousServer;

// Who has to be told of a signal, which changes as the process gets on.
class StopTarget {
 public:
  // Told when a signal ends this process before an agent was there to do it.
  using EndedByUser = std::function<void(int exit_code, const std::string& reason)>;
  // `preemption_signal`: announces a preemption; 0: none does.
  StopTarget(int preemption_signal, EndedByUser on_early_end)
      : preemption_signal_(preemption_signal), on_early_end_(std::move(on_early_end)) {}

  void SetParts(Agent* agent, RendezvousServer* server) MUSTER_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    agent_ = agent;
    server_ = server;
  }

  void AgentIsDone() MUSTER_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    agent_is_done_ = true;
  }

  // This node will be taken away: as good as SIGTERM, however often it is said.
  void OnNotice(const std::string& notice) MUSTER_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    if (agent_is_done_) return;
    if (agent_ == nullptr) {
      const std::string reason = Cat("stopped by ", notice, " before the job had begun");
      Say(reason);
      on_early_end_(128 + SIGTERM, reason);
      _exit(128 + SIGTERM);
    }
    agent_->RequestStop(SIGTERM, notice);
  }

  void OnSignal(int number) MUSTER_EXCLUDES(mutex_) {
    if (number == preemption_signal_) {
      return OnNotice(Cat("preemption signal ", agent::SignalName(number)));
    }
    base::MutexLock lock(mutex_);
    if (number == SIGUSR1 || number == SIGUSR2) {
      if (agent_ != nullptr) agent_->ForwardSignal(number);
      return;
    }
    ++count_;
    std::string reason = Cat("stopped by ", agent::SignalName(number));
    if (agent_ == nullptr) {
      // Nothing was started that the guardian wouldn't end: whatever call blocks, it is over.
      Say(Cat(reason, " before the job had begun"));
      on_early_end_(128 + number, Cat(reason, " before the job had begun"));
      _exit(128 + number);
    }
    agent_->RequestStop(number);
    bool is_urgent = agent_is_done_ || count_ > 1;
    if (server_ != nullptr && is_urgent) {
      server_->HostStopping(Cat("the rendezvous was ", reason, " on its host"), 128 + number);
    }
    // The job's other nodes were told; who doesn't go now isn't waited for.
    if (agent_is_done_ && count_ > 2) _exit(128 + number);
  }

 private:
  const int preemption_signal_;
  const EndedByUser on_early_end_;
  base::Mutex mutex_;
  Agent* agent_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  RendezvousServer* server_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  bool agent_is_done_ MUSTER_GUARDED_BY(mutex_) = false;
  int count_ MUSTER_GUARDED_BY(mutex_) = 0;
};

std::vector<std::string> Environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

// "/dev/null" is torchrun's way to say "no files".
std::optional<Problem> CheckLogs(const RunOptions& options) {
  if (options.log_dir.empty() || options.log_dir == "/dev/null") return std::nullopt;
  std::optional<std::string> wrong = CheckLogFolder(options.log_dir);
  return wrong.has_value() ? std::optional(Problem{kExitUsage, *wrong}) : std::nullopt;
}

std::optional<Problem> CheckResult(const RunOptions& options) {
  std::optional<std::string> wrong = CheckResultFile(options.result_file);
  return wrong.has_value() ? std::optional(Problem{kExitUsage, *wrong}) : std::nullopt;
}

// How a user calls what runs: the script or module, not Python.
std::string ProgramName(const RunOptions& options) {
  return options.is_module ? options.program.front()
                           : std::filesystem::path(options.program.front()).filename().string();
}

// Several agents on one host are told apart by what they were told to be.
std::string NodeName(const RunOptions& options) {
  std::string name = HostName();
  if (!options.local_addr.empty()) name += Cat("(", options.local_addr, ")");
  return name;
}

agent::MasterStore StoreOf(const RunOptions& options, const LaunchPlan& plan,
                           const MeetingPlace& place) {
  if (options.master_store == StoreChoice::kWorker) return agent::MasterStore::kWorker;
  // Only node rank 0 is ever group rank 0 there, and it may have found another host at the port.
  const bool is_shared =
      plan.layout == Layout::kStatic && (plan.node_rank != 0 || place.server != nullptr);
  return is_shared ? agent::MasterStore::kSharedPort : agent::MasterStore::kAgent;
}

AgentSettings Settings(const RunOptions& options, const LaunchPlan& plan,
                       const MeetingPlace& place) {
  AgentSettings settings;
  settings.core.attach.node_name = NodeName(options);
  settings.core.attach.address = place.address;
  settings.find_address = place.find_address;
  settings.core.attach.worker_count = plan.worker_count;
  settings.core.attach.node_rank = plan.node_rank;
  settings.core.attach.terms = plan.terms;
  // With one node there is nothing to compare it with.
  if (plan.terms.max_nodes > 1) settings.core.attach.facts = LookUpNodeFacts();
  settings.core.attach.facts.topology = options.topology_key;
  settings.core.endpoint = place.name;
  settings.core.shutdown_timeout = options.shutdown_timeout;
  settings.core.lost_peer_grace = options.lost_peer_grace;
  settings.core.join_timeout = options.join_timeout;
  settings.core.reconnect_timeout = options.reconnect_timeout;
  settings.core.lost_contact = options.lost_contact;
  settings.core.hang_timeout = options.hang_timeout;
  settings.stack_signal = options.stack_signal;
  settings.shared_port = plan.endpoint.port;
  settings.master_store = StoreOf(options, plan, place);
  settings.argv = plan.argv;
  settings.preload = options.preload;
  settings.environment = Environment();
  settings.role = options.role;
  settings.program = ProgramName(options);
  settings.log_dir = options.log_dir;
  if (const char* own = std::getenv(env::kErrorFile)) settings.error_file = own;
  settings.streams.resize(static_cast<size_t>(plan.worker_count));
  for (int i = 0; i < plan.worker_count; ++i) {
    agent::StreamChoice& choice = settings.streams[static_cast<size_t>(i)];
    choice.redirect_stdout = (options.redirects.Of(i) & 1) != 0;
    choice.redirect_stderr = (options.redirects.Of(i) & 2) != 0;
    choice.tee_stdout = (options.tee.Of(i) & 1) != 0;
    choice.tee_stderr = (options.tee.Of(i) & 2) != 0;
  }
  switch (options.prefix) {
    case PrefixChoice::kAuto:
      settings.prefix = agent::PrefixMode::kAuto;
      break;
    case PrefixChoice::kAlways:
      settings.prefix = agent::PrefixMode::kAlways;
      break;
    case PrefixChoice::kNever:
      settings.prefix = agent::PrefixMode::kNever;
      break;
  }
  return settings;
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
  MachineFacts facts = LookUpMachine(options.workers.kind != WorkerCount::Kind::kNumber);
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

// Null where the plan has none. What it has to say goes to the agent, which never waits for a
// console; there is nothing to say before there is one.
std::unique_ptr<SharedStore> MakeSharedStore(const LaunchPlan& plan, std::atomic<Agent*>* speaker) {
  if (!plan.shares_port_with_store) return nullptr;
  return std::make_unique<SharedStore>([speaker](const std::string& line) {
    if (Agent* agent = *speaker) agent->Say(Cat("PyTorch's store ", line));
  });
}

int RunJob(const RunOptions& options, const LaunchPlan& plan, ResultFile& result) {
  // First of all: forking beside gRPC's threads is unsafe, and what workers inherit is fixed here.
  agent::GuardianLink guardian = agent::StartGuardian();
  if (guardian.pid < 0) {
    std::string problem =
        Cat("the guardian process can't be started: ", std::strerror(guardian.error));
    Say(problem);
    result.Write(EndedEarly(options, plan, kExitOsError, problem));
    return kExitOsError;
  }
  // Its start has raised the limit.
  if (std::optional<std::string> shortage = TooFewDescriptors(options, plan, LookUpDescriptors())) {
    Say(*shortage);
    result.Write(EndedEarly(options, plan, kExitOsError, *shortage));
    return kExitOsError;
  }
  StopTarget target(options.preemption_signal, [&](int exit_code, const std::string& reason) {
    result.Write(EndedEarly(options, plan, exit_code, reason));
  });
  StopSignals signals;
  signals.Watch([&target](int number) { target.OnSignal(number); });
  std::unique_ptr<PreemptionWatch> watch;
  if (!options.preemption_file.empty()) {
    auto started = PreemptionWatch::Start(options.preemption_file, [&target, &options] {
      target.OnNotice(Cat("preemption notice ", options.preemption_file));
    });
    if (!started.ok()) {
      Say(std::string(started.status().message()));
      return kExitUsage;
    }
    watch = *std::move(started);
  }

  std::atomic<Agent*> speaker = nullptr;
  std::unique_ptr<SharedStore> store = MakeSharedStore(plan, &speaker);
  MeetingOptions meeting;
  meeting.store = store.get();
  meeting.lease = options.lease;
  meeting.reconnect_timeout = options.reconnect_timeout;
  meeting.checkpoint_patience = options.shutdown_timeout;
  meeting.patience = options.join_timeout;
  meeting.say = [](const std::string& line) { Say(line); };
  std::variant<MeetingPlace, MeetingFailure> found = FindMeetingPlace(plan, meeting);
  if (auto* failure = std::get_if<MeetingFailure>(&found)) {
    Say(failure->text);
    result.Write(EndedEarly(options, plan, failure->exit_code, failure->text));
    return failure->exit_code;
  }
  auto& place = std::get<MeetingPlace>(found);
  const AgentSettings settings = Settings(options, plan, place);
  std::unique_ptr<Agent> agent = MakeAgent(settings, place.connect_to, guardian);
  target.SetParts(agent.get(), place.server.get());
  speaker = agent.get();
  Verdict verdict = agent->Run();
  target.AgentIsDone();
  // At once: the rest may take as long as the other nodes do.
  result.Write(EndedWith(settings, verdict, agent->last_place()));
  if (place.server != nullptr) {
    // Other nodes may go on without this one, and each has to hear the verdict.
    constexpr auto kUnremarked = std::chrono::seconds(1);
    constexpr auto kAsLongAsItTakes = std::chrono::hours(24 * 365);
    if (!place.server->WaitUntilIdle(kUnremarked)) {
      Say("this node hosts the rendezvous and stays until the other nodes are done; another signal "
          "ends the job on all of them");
      place.server->WaitUntilIdle(kAsLongAsItTakes);
    }
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
  auto get_env = [](const char* name) -> const char* { return std::getenv(name); };
  absl::StatusOr<RunOptions> options = ParseRunOptions(words, get_env);
  if (!options.ok()) {
    Say(std::string(options.status().message()));
    return kExitUsage;
  }
  if (options->wants_help) return Print(RunHelp()) ? 0 : 1;
  if (options->wants_version) return Print(Cat("muster ", kVersion, "\n")) ? 0 : 1;
  if (absl::Status asked = AskScheduler(get_env, *options); !asked.ok()) {
    Say(std::string(asked.message()));
    return kExitUsage;
  }
  SetUpLog(LogVolume::kWarnings);
  LaunchPlan plan;
  ResultFile result(options->result_file);
  if (std::optional<Problem> problem = Prepare(*options, plan)) {
    Say(problem->text);
    // Whoever mistypes a flag looks at the screen.
    if (problem->exit_code != kExitUsage) {
      result.Write(EndedEarly(*options, plan, problem->exit_code, problem->text));
    }
    return problem->exit_code;
  }
  for (const std::string& warning : plan.warnings) Say(warning);
  return RunJob(*options, plan, result);
}

}  // namespace muster::launcher
