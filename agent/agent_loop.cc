#include "agent/agent_loop.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <functional>
#include <utility>

#include "agent/core/worker_environment.h"
#include "agent/free_port.h"
#include "agent/private_folder.h"
#include "agent/process_names.h"
#include "agent/run_record.h"
#include "base/entropy.h"

namespace muster::agent {
namespace {

// Until what ended workers wrote must have been shown; a stuck console costs no more.
constexpr Duration kOutputPatience = std::chrono::seconds(1);
// Beyond that, at the end, for the pump's answer: it waits for a slow disk, not for a stuck one.
constexpr Duration kOutputMargin = std::chrono::seconds(65);
// How long workers wait for their folders. They can do without: only error files lie there.
constexpr Duration kFolderPatience = std::chrono::seconds(1);

bool IsHopeless(absl::StatusCode code) {
  return code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kUnimplemented ||
         code == absl::StatusCode::kInternal;
}

}  // namespace

AgentLoop::AgentLoop(const AgentSettings* settings, const Clock* clock)
    : settings_(*settings), clock_(*clock), address_(settings->core.attach.address) {}

Verdict AgentLoop::Run(Parts parts) {
  parts_ = parts;
  machine_.emplace(settings_.core, base::FreshId<Incarnation>(), clock_.Now());
  if (settings_.master_store == MasterStore::kAgent) {
    store_.emplace([this](const std::string& line) { Say("PyTorch's store " + line); });
  }
  PerformAll(machine_->Start());
  Preload();
  while (!verdict_) {
    if (std::function<void()> task = tasks_->Take(UntilNextWakeup())) {
      task();
    } else {
      if (pending_spawn_ && clock_.Now() >= pending_spawn_->deadline) ReleaseSpawn();
      Step(TimePassed{});
    }
    StepWhatIsReady();
  }
  WaitForOutput();
  return *std::move(verdict_);
}

Duration AgentLoop::UntilNextWakeup() const {
  Instant next = std::min(machine_->NextWakeup(), ordered_.NextDeadline());
  if (pending_spawn_) next = std::min(next, pending_spawn_->deadline);
  return next.IsNever() ? Duration::max() : next - clock_.Now();
}

void AgentLoop::StepWhatIsReady() {
  while (std::optional<AgentEvent> event = ordered_.Take(clock_.Now())) Step(*event);
}

// Nothing steps the machine any more.
void AgentLoop::WaitForOutput() {
  Instant end = clock_.Now() + kOutputPatience + kOutputMargin;
  while (unfinished_rounds_ > 0) {
    std::function<void()> task = tasks_->Take(end - clock_.Now());
    if (!task) return;
    task();
  }
}

void AgentLoop::Step(const AgentEvent& event) {
  if (verdict_) return;
  StepInput input{.now = clock_.Now(), .fresh_incarnation = base::FreshId<Incarnation>()};
  PerformAll(machine_->Step(input, event));
}

void AgentLoop::PerformAll(const std::vector<AgentEffect>& effects) {
  for (const AgentEffect& effect : effects) {
    std::visit([this](const auto& e) { Perform(e); }, effect);
  }
}

// ---- events --------------------------------------------------------------------------------

void AgentLoop::RequestStop(int signal, std::string notice) {
  tasks_->Post([this, signal, notice = std::move(notice)] {
    Step(StopRequested{.signal = signal, .notice = notice});
  });
}

void AgentLoop::ForwardSignal(int signal) {
  tasks_->Post([this, signal] {
    ReleaseSpawn();
    parts_.runner->Signal(signal);
  });
}

void AgentLoop::Say(std::string line) {
  tasks_->Post([this, line = std::move(line)] { parts_.pump->Say("muster: " + line); });
}

void AgentLoop::OnConnected(uint64_t connection) {
  tasks_->Post([this, connection] {
    if (connection != connection_) return;
    Step(RendezvousConnected{.to_own_address = parts_.client->IsToOwnAddress()});
  });
}

void AgentLoop::OnMessage(uint64_t connection, RendezvousMessage message) {
  bool is_taken = tasks_->Offer([this, connection, message = std::move(message)] {
    if (connection == connection_) Step(RendezvousSaid{message});
  });
  // A stream with a hole is of no use; a new one begins with what counts.
  if (is_taken || flooded_connection_.exchange(connection) == connection) return;
  tasks_->Post([this, connection] {
    if (connection != connection_) return;
    Perform(Disconnect{});
    Step(RendezvousDisconnected{.why = "it said more than this node could take in"});
  });
}

void AgentLoop::OnDisconnected(uint64_t connection, absl::Status why) {
  tasks_->Post([this, connection, why = std::move(why)] {
    if (connection != connection_) return;
    Step(RendezvousDisconnected{.why = std::string(why.message()),
                                .is_hopeless = IsHopeless(why.code())});
  });
}

void AgentLoop::OnWorkerStarted(RoundId round, LocalRank local_rank, int64_t pid) {
  tasks_->Post([this, round, local_rank, pid] {
    if (round == place_.world.round) {
      memory_.WorkerStarted(local_rank, pid);
      pids_[local_rank] = pid;
    }
    Step(WorkerStarted{.round = round, .local_rank = local_rank, .pid = pid});
  });
}

void AgentLoop::OnWorkerFailedToStart(RoundId round, LocalRank local_rank, int error) {
  tasks_->Post([this, round, local_rank, error] {
    if (round != place_.world.round) return;
    WorkerEnded ended{.round = round,
                      .local_rank = local_rank,
                      .failure = FailureToStart(local_rank, error),
                      .at = clock_.Now()};
    LookUpFlaw(std::move(ended), error);
  });
}

void AgentLoop::OnWorkerExited(RoundId round, LocalRank local_rank, int64_t pid, WorkerExit exit,
                               Instant at) {
  tasks_->Post([this, round, local_rank, pid, exit, at] {
    if (round != place_.world.round) return;
    WorkerFailure failure = FailureOf(local_rank, pid, exit);
    WorkerEnded ended{
        .round = round, .local_rank = local_rank, .failure = std::move(failure), .at = at};
    if (!exit.Succeeded()) return LookUpWhy(std::move(ended));
    ordered_.Add(std::move(ended), 0, clock_.Now());
  });
}

void AgentLoop::OnLeftBehind(RoundId /*round*/, std::vector<int64_t> pids, Duration grace) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(grace).count();
  tasks_->Post([this, seconds, names = ProcessNames(pids)] {
    Perform(Show{.text = "waiting at most " + std::to_string(seconds) +
                         " s for what workers have left behind: " + names});
  });
}

void AgentLoop::OnGroupGone(RoundId round, std::vector<int64_t> unkillable) {
  tasks_->Post([this, round, names = ProcessNames(unkillable)] {
    FinishOutput(round);
    ordered_.Add(GroupGone{.round = round, .unkillable = names}, 0, clock_.Now());
  });
}

void AgentLoop::OnPreloadLost(std::string why) {
  tasks_->Post([this, why = std::move(why)] {
    Perform(Show{.text = "workers start without --preload: " + why});
  });
}

void AgentLoop::OnGuardianLost(std::string why) {
  tasks_->Post(
      [this, why = std::move(why)] { ordered_.Add(GuardianLost{.why = why}, 0, clock_.Now()); });
}

void AgentLoop::OnShardReported(ShardReport report) {
  tasks_->Post([this, report = std::move(report)] { Step(WorkerReportedShard{report}); });
}

void AgentLoop::OnCommitPublished(CommitDone done) {
  tasks_->Post([this, done = std::move(done)] { Step(WorkerCommitted{done}); });
}

void AgentLoop::OnWorkerAnswered(const World& world, LocalRank local_rank,
                                 const std::optional<Activity>& activity) {
  tasks_->Offer([this, world, local_rank, activity] {
    Step(WorkerAnswered{.world = world, .local_rank = local_rank, .activity = activity});
  });
}

void AgentLoop::OnWorkerLeft(const World& world, LocalRank local_rank) {
  tasks_->Post(
      [this, world, local_rank] { Step(WorkerLeft{.world = world, .local_rank = local_rank}); });
}

void AgentLoop::OnStepReported(const World& world, LocalRank local_rank,
                               worker_channel::StepDone done) {
  // Workers may say this as often as they like; one that is dropped is made good by the next.
  tasks_->Offer([this, world, local_rank, done] {
    Step(WorkerReportedStep{
        .world = world, .local_rank = local_rank, .step = done.step, .can_save = done.can_save});
  });
}

void AgentLoop::OnCheckpointAnnounced(const World& world, int64_t step) {
  tasks_->Post(
      [this, world, step] { Step(WorkerAnnouncedCheckpoint{.world = world, .step = step}); });
}

void AgentLoop::OnCheckpointKnown(const World& world, LocalRank local_rank, int64_t step) {
  tasks_->Post([this, world, local_rank, step] {
    Step(WorkerKnowsCheckpoint{.world = world, .local_rank = local_rank, .step = step});
  });
}

void AgentLoop::OnHello(RoundId round, LocalRank local_rank) {
  // A worker may connect as often as it likes; one whose word is dropped is left to the lease.
  tasks_->Offer([this, round, local_rank] {
    Step(WorkerSaidHello{.round = round, .local_rank = local_rank});
  });
}

// ---- effects -------------------------------------------------------------------------------

void AgentLoop::Perform(const Connect&) { connection_ = parts_.client->Connect(); }

void AgentLoop::Perform(const Disconnect&) {
  parts_.client->Disconnect();
  connection_ = 0;
}

void AgentLoop::Perform(const ProbeEndpoint&) {
  parts_.client->ProbeEndpoint([this](bool is_refused) {
    tasks_->Post([this, is_refused] { Step(EndpointProbed{.is_refused = is_refused}); });
  });
}

void AgentLoop::Perform(const SendToRendezvous& send) {
  AgentMessage message = send.message;
  if (auto* attach = std::get_if<Attach>(&message)) {
    std::string address = settings_.find_address ? settings_.find_address() : "";
    if (!address.empty()) address_ = std::move(address);
    attach->address = address_;
    attach->candidate_port = CandidatePort();
    // What the rendezvous compares this node's clock by.
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    attach->facts.wall_time_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
  } else if (auto* done = std::get_if<StopDone>(&message)) {
    done->candidate_port = CandidatePort();
  }
  parts_.client->Send(message);
}

uint16_t AgentLoop::CandidatePort() {
  if (store_) return store_->Offer(address_);
  return settings_.master_store == MasterStore::kSharedPort ? settings_.shared_port
                                                            : FindFreePort();
}

void AgentLoop::Perform(const SpawnGroup& spawn) {
  ReleaseSpawn();
  place_ = spawn.place;
  spawned_at_s_ = time(nullptr);
  memory_.RoundStarts();
  pids_.clear();
  first_error_.clear();
  int worker_count = settings_.core.attach.worker_count;
  parts_.service->OpenRound(ServiceRound());
  std::vector<WorkerOutput> outputs;
  outputs.reserve(worker_count);
  for (int i = 0; i < worker_count; ++i) {
    outputs.push_back(OutputOf(LocalRank(i), Rank(place_.first_rank.value + i)));
  }
  std::vector<WorkerCommand> commands = Commands(outputs);
  std::vector<WorkerPipes> pipes = parts_.pump->Open(place_.world.round, outputs);
  if (RefuseWithoutPipes(pipes) || RefuseWithoutStore(pipes)) return;
  for (size_t i = 0; i < pipes.size() && i < commands.size(); ++i) {
    commands[i].stdout_fd = pipes[i].stdout_fd;
    commands[i].stderr_fd = pipes[i].stderr_fd;
  }
  RoundId round = place_.world.round;
  pending_spawn_ = PendingSpawn{
      .round = round, .commands = std::move(commands), .deadline = clock_.Now() + kFolderPatience};
  auto make_folders = [this, tasks = tasks_, layout = *parts_.layout,
                       attempt = AttemptOf(place_, worker_count), round] {
    // Before the folders are there: whoever finds them knows whose they are.
    if (layout.record()) layout.record()->Note(attempt);
    layout.MakeAttempt(attempt.number, attempt.worker_count);
    tasks->Post([this, round] {
      if (pending_spawn_ && pending_spawn_->round == round) ReleaseSpawn();
    });
  };
  if (!parts_.layout->has_folder() || !files_.Offer(0, std::move(make_folders))) ReleaseSpawn();
  std::string private_folder = parts_.layout->private_folder();
  if (private_folder.empty() || std::exchange(has_tidied_, true)) return;
  files_.Offer(0, [parent = private_folder.substr(0, private_folder.rfind('/'))] {
    RemoveAbandonedFolders(parent);
  });
}

void AgentLoop::ReleaseSpawn() {
  if (!pending_spawn_) return;
  PendingSpawn spawn = *std::exchange(pending_spawn_, std::nullopt);
  parts_.runner->Spawn(spawn.round, std::move(spawn.commands));
}

WorkerService::Round AgentLoop::ServiceRound() const {
  const Attach& node = settings_.core.attach;
  WorkerService::Round round;
  round.scope = {
      .run_id = node.terms.run_id, .incarnation = machine_->incarnation(), .world = place_.world};
  for (int i = 0; i < node.worker_count; ++i) {
    LocalRank local_rank(i);
    std::string id = WorkerIdOf(machine_->incarnation(), place_.world.round, local_rank);
    round.welcomes[id] = {.world = place_.world,
                          .key = place_.key,
                          .rank = Rank(place_.first_rank.value + i),
                          .world_size = place_.world_size,
                          .local_rank = local_rank,
                          .local_world_size = node.worker_count,
                          .address = address_,
                          .attempt = place_.attempt,
                          .restarts_charged = place_.restarts_charged,
                          .resume = place_.resume};
  }
  return round;
}

void AgentLoop::Preload() {
  if (settings_.preload.empty()) return;
  parts_.runner->Preload({.modules = settings_.preload,
                          .argv = settings_.argv,
                          .environment = CommonEnvironment(Surroundings())});
}

void AgentLoop::Perform(const StopGroup& stop) {
  // Stopping workers that come only afterwards would let them live.
  ReleaseSpawn();
  parts_.runner->Stop(stop.round, {.first_signal = stop.first_signal, .grace = stop.grace});
}

void AgentLoop::Perform(const PingWorkers& ping) { parts_.service->Ping(ping.world); }

void AgentLoop::Perform(const KillWorker& kill) {
  parts_.runner->SignalWorker(kill.round, kill.local_rank, SIGKILL);
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

void AgentLoop::Perform(const AskForCheckpoint& ask) {
  parts_.service->AskForCheckpoint(ask.world);
}

void AgentLoop::Perform(const TellCheckpoint& tell) {
  parts_.service->TellCheckpoint(tell.world, tell.step);
}

void AgentLoop::Perform(const AgreeOnCheckpoint& agree) {
  parts_.service->AgreeOnCheckpoint(agree.world);
}

void AgentLoop::Perform(const Show& show) { parts_.pump->Say("muster: " + show.text); }

void AgentLoop::Perform(const End& end) { verdict_ = end.verdict; }

// ---- output --------------------------------------------------------------------------------

void AgentLoop::FinishOutput(RoundId round) {
  ++unfinished_rounds_;
  parts_.pump->Finish(round, kOutputPatience,
                      [this, tasks = tasks_](const std::vector<LostOutput>& all_lost) {
                        tasks->Post([this, all_lost] {
                          --unfinished_rounds_;
                          for (const LostOutput& lost : all_lost) {
                            parts_.pump->Say("muster: " + std::to_string(lost.bytes) +
                                             " bytes of output are missing in " + lost.place +
                                             " (" + lost.reason + ")");
                          }
                        });
                      });
}

}  // namespace muster::agent
