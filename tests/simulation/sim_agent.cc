#include "tests/simulation/sim_agent.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "tests/simulation/invariants.h"
#include "tests/simulation/workload.h"

namespace muster::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

agent::AgentOptions MachineOptions(const SimOptions& options, const SimAgent::Options& self,
                                   const std::string& address) {
  agent::AgentOptions result;
  result.endpoint = "sim:1";
  result.shutdown_timeout = options.shutdown_timeout;
  result.join_timeout = options.terms.join_timeout;
  result.reconnect_timeout = options.reconnect_timeout;
  result.lost_contact = options.lost_contact;
  result.attach.node_name = self.node.name;
  result.attach.address = address;
  result.attach.worker_count = self.node.worker_count;
  result.attach.node_rank = self.node.node_rank;
  result.attach.terms = options.terms;
  if (self.node.disagrees) result.attach.terms.max_nodes += 1;
  return result;
}

}  // namespace

SimAgent::SimAgent(SimParts& parts, Options options)
    : parts_(parts),
      options_(std::move(options)),
      address_("10.0.0." + std::to_string(options_.host)),
      machine_(MachineOptions(parts.options, options_, address_),
               parts.random.FreshId<Incarnation>(), LocalNow()),
      attached_with_(1) {
  parts_.worlds.live.resize(static_cast<size_t>(options_.index) + 1);
  live().host = options_.host;
}

void SimAgent::Start() {
  for (agent::AgentEffect& effect : machine_.Start()) {
    std::visit([this](auto& e) { Perform(e); }, effect);
  }
  WatchTimer();
}

bool SimAgent::may_run_beside() const {
  switch (parts_.options.lost_contact) {
    case agent::LostContact::kAuto:
      return node().uses_sdk;
    case agent::LostContact::kGoOn:
      return true;
    case agent::LostContact::kStop:
      break;
  }
  return false;
}

Instant SimAgent::lease_end() const {
  if (!acknowledged_) return Instant::Never();
  return *acknowledged_ - options_.clock_offset + parts_.options.lease;
}

WorldIndex SimAgent::world() const {
  const LiveWorkers& mine = parts_.worlds.live[options_.index];
  return mine.count > 0 ? mine.world : -1;
}

// ---- the shell -----------------------------------------------------------------------------

void SimAgent::Connected(StreamIndex stream) {
  Take(agent::RendezvousConnected{.to_own_address = true}, stream);
}

void SimAgent::Disconnected(StreamIndex stream, const char* why) {
  Take(agent::RendezvousDisconnected{.why = why}, stream);
}

void SimAgent::Said(StreamIndex stream, RendezvousMessage message) {
  Take(agent::RendezvousSaid{std::move(message)}, stream);
}

void SimAgent::ReportShard(const ShardReport& report) { Take(agent::WorkerReportedShard{report}); }

void SimAgent::ReportPublished(const CommitDone& done) { Take(agent::WorkerCommitted{done}); }

void SimAgent::StopBySignal(int signal) { Take(agent::StopRequested{signal}); }

void SimAgent::Take(agent::AgentEvent event, StreamIndex stream) {
  if (!is_alive_) return;
  inbox_.push_back({std::move(event), stream});
  if (!is_frozen_) Drain();
}

void SimAgent::Drain() {
  // What an effect of a step brings about waits until the step's other effects are carried out.
  if (is_draining_) return;
  is_draining_ = true;
  while (is_alive_ && !inbox_.empty()) {
    Incoming incoming = std::move(inbox_.front());
    inbox_.pop_front();
    if (incoming.stream >= 0 && incoming.stream != stream_) continue;
    if (std::holds_alternative<agent::RendezvousDisconnected>(incoming.event)) stream_ = -1;
    if (const auto* probed = std::get_if<agent::EndpointProbed>(&incoming.event)) {
      if (probed->is_refused) nobody_there_at_ = probe_began_;
    }
    Step(incoming.event);
  }
  is_draining_ = false;
}

// "n3#7 ...": the node and which life of which agent it is.
void SimAgent::Tell(const std::string& text) {
  parts_.trace.Add(parts_.queue.now(),
                   node().name + "#" + std::to_string(options_.index) + " " + text);
}

// What its own node tells the agent; what the rendezvous says is told where it is said.
void SimAgent::TellLocal(const agent::AgentEvent& event) {
  if (std::holds_alternative<agent::RendezvousConnected>(event)) Tell("is connected");
  if (const auto* gone = std::get_if<agent::RendezvousDisconnected>(&event)) {
    Tell("is disconnected: " + gone->why);
  } else if (const auto* ended = std::get_if<agent::WorkerEnded>(&event)) {
    Tell("worker " + std::to_string(ended->failure.rank.value) + " ended with " +
         std::to_string(ended->failure.exit.ShellCode()));
  } else if (const auto* group = std::get_if<agent::GroupGone>(&event)) {
    Tell("group of round " + std::to_string(group->round.value) + " is gone");
  }
}

void SimAgent::Step(const agent::AgentEvent& event) {
  if (parts_.trace.is_on()) TellLocal(event);
  NoteAcknowledged(event);
  agent::StepInput input{.now = LocalNow(),
                         .fresh_incarnation = parts_.random.FreshId<Incarnation>()};
  StreamIndex stream_before = stream_;
  for (agent::AgentEffect& effect : machine_.Step(input, event)) {
    std::visit([this](auto& e) { Perform(e); }, effect);
  }
  // What comes as it gives up on the stream is lost to it.
  if (stream_ == stream_before) {
    Learn(event);
  } else if (is_alive_) {
    told_verdict_.reset();
  }
  if (std::holds_alternative<agent::TimePassed>(event)) {
    parts_.invariants.CheckWakeup("agent", LocalNow(), machine_.NextWakeup());
  }
  WatchTimer();
}

// The lease's arithmetic, done once more; it ends with the job.
void SimAgent::NoteAcknowledged(const agent::AgentEvent& event) {
  const auto* said = std::get_if<agent::RendezvousSaid>(&event);
  if (said == nullptr) return;
  if (const auto* ack = std::get_if<HeartbeatAck>(&said->message)) {
    while (!heartbeats_.empty() && heartbeats_.front().first <= ack->sequence) {
      acknowledged_ = heartbeats_.front().second;
      heartbeats_.pop_front();
    }
  } else if (std::holds_alternative<Attached>(said->message)) {
    acknowledged_ = attach_sent_at_;
  } else if (const auto* ended = std::get_if<JobEnded>(&said->message)) {
    told_verdict_ = ended->verdict;
  }
}

void SimAgent::Learn(const agent::AgentEvent& event) {
  const auto* said = std::get_if<agent::RendezvousSaid>(&event);
  if (said == nullptr) return;
  if (const auto* start = std::get_if<StartRound>(&said->message)) {
    if (start->world.round <= knowledge_.round) return;
    knowledge_.round = start->world.round;
    knowledge_.attempt = start->attempt;
    knowledge_.restarts_charged = start->restarts_charged;
    if (start->resume) knowledge_.commit = start->resume;
  } else if (const auto* noted = std::get_if<CommitNoted>(&said->message)) {
    knowledge_.commit = noted->commit;
  }
}

void SimAgent::WatchTimer() {
  if (!is_alive_) return;
  Instant next = machine_.NextWakeup() - options_.clock_offset;
  if (next.IsNever() || next >= timer_at_) return;
  timer_at_ = next;
  // A thread is never woken on the dot.
  parts_.queue.At(next + parts_.random.Between(Duration(0), microseconds(500)), Act::kAgentTimer,
                  options_.index);
}

void SimAgent::Perform(agent::Connect&) {
  if (stream_ >= 0) parts_.network.CloseAgentEnd(stream_);
  stream_ = parts_.network.Connect(options_.index, options_.host);
  attach_sent_ = false;
}

void SimAgent::Perform(agent::Disconnect&) {
  if (stream_ >= 0) parts_.network.CloseAgentEnd(stream_);
  stream_ = -1;
}

void SimAgent::Perform(agent::ProbeEndpoint&) {
  probe_began_ = LocalNow();
  parts_.network.Probe(options_.index);
}

void SimAgent::Perform(agent::SendToRendezvous& effect) {
  if (parts_.trace.is_on()) Tell("-> " + Describe(effect.message));
  if (stream_ < 0) return;
  if (auto* attach = std::get_if<Attach>(&effect.message)) {
    attach->candidate_port = static_cast<uint16_t>(attached_with_.size());
    attached_with_.push_back(knowledge_);
    attach_sent_at_ = LocalNow();
    heartbeats_.clear();
    attach_sent_ = true;
  } else {
    if (!attach_sent_) parts_.invariants.Break("an agent spoke before it attached");
    if (auto* done = std::get_if<StopDone>(&effect.message)) done->candidate_port = 9;
    if (auto* beat = std::get_if<Heartbeat>(&effect.message)) {
      heartbeats_.emplace_back(beat->sequence, LocalNow());
    } else if (parts_.random.Chance(parts_.options.duplicate_percent) &&
               !std::holds_alternative<Leave>(effect.message)) {
      kept_.push_back(effect.message);
      parts_.queue.After(parts_.random.Between(Duration(0), milliseconds(1500)), Act::kAgentReplays,
                         options_.index, static_cast<int>(kept_.size()) - 1);
    }
  }
  parts_.network.Send(stream_, std::move(effect.message));
}

void SimAgent::Perform(agent::RenewDeadline& effect) {
  bool is_over = told_verdict_.has_value();
  if (acknowledged_ && !is_over) {
    parts_.invariants.CheckDeadline(
        effect.deadline, may_run_beside() ? std::max(*acknowledged_, LocalNow()) : *acknowledged_,
        nobody_there_at_);
  }
  deadline_ = effect.deadline - options_.clock_offset;
  if (deadline_.IsNever() || !deadline_check_.IsNever()) return;
  deadline_check_ = deadline_;
  parts_.queue.At(deadline_, Act::kGuardianDeadline, options_.index);
}

void SimAgent::Perform(agent::AnswerCommit& effect) {
  parts_.workload.Answered(options_.index, effect);
}

void SimAgent::Perform(agent::Show& effect) {
  if (parts_.trace.is_on()) Tell("shows: " + effect.text);
}

void SimAgent::Perform(agent::End& effect) {
  if (parts_.trace.is_on()) Tell("ends: " + Describe(effect.verdict));
  ended_with_ = effect.verdict;
  parts_.invariants.AgentEnded(options_.index, effect.verdict);
  is_alive_ = false;
  if (stream_ >= 0) parts_.network.CloseAgentEnd(stream_);
}

// ---- faults --------------------------------------------------------------------------------

void SimAgent::Kill() {
  is_alive_ = false;
  is_frozen_ = false;
  if (stream_ >= 0) parts_.network.CloseAgentEnd(stream_);
  parts_.queue.After(parts_.random.Between(microseconds(300), milliseconds(2)), Act::kGuardianKills,
                     options_.index);
}

void SimAgent::KillGuardian() {
  guardian_is_alive_ = false;
  KillWorkers(milliseconds(1));
  parts_.queue.After(parts_.random.Between(milliseconds(2), milliseconds(4)), Act::kGuardianKills,
                     options_.index);
}

void SimAgent::Freeze() { is_frozen_ = true; }

void SimAgent::Thaw() {
  is_frozen_ = false;
  Drain();
  WatchTimer();
  if (is_alive_ && LocalNow() >= machine_.NextWakeup()) Take(agent::TimePassed{});
}

void SimAgent::PowerOff() {
  is_alive_ = false;
  guardian_is_alive_ = false;
  parts_.network.PowerOff(options_.host);
  for (Worker& worker : workers_) worker.state = WorkerState::kEnded;
  if (live().count > 0) parts_.worlds[live().world].is_broken = true;
  live().count = 0;
}

// ---- the guardian and the workers ----------------------------------------------------------

void SimAgent::Perform(agent::SpawnGroup& effect) {
  parts_.invariants.CheckSpawn(options_.index, effect.place);
  if (!guardian_is_alive_) return;
  place_ = effect.place;
  ++group_number_;
  is_stopping_ = false;
  is_sweeping_ = false;
  workers_.assign(static_cast<size_t>(node().worker_count), Worker{});
  live().world = parts_.worlds.Find(effect.place.world);
  live().count = node().worker_count;
  WorldMember* member = parts_.worlds.FindMember(effect.place.world, options_.index);
  if (member != nullptr) member->has_spawned = true;
  for (int i = 0; i < node().worker_count; ++i) {
    parts_.queue.After(parts_.random.Between(microseconds(300), milliseconds(3)),
                       Act::kWorkerStarts, options_.index, GroupCode(i));
  }
}

void SimAgent::StartWorker(int local_rank) {
  Worker& worker = workers_[local_rank];
  if (worker.state != WorkerState::kStarting || !worker.dies_at.IsNever()) return;
  if (std::exchange(next_cannot_start_, false)) {
    worker.cannot_start = true;
    worker.is_genuine = true;
    DieAt(local_rank, Duration(0), {.code = 127});
    return;
  }
  worker.state = WorkerState::kRunning;
  Take(agent::WorkerStarted{.round = place_->world.round,
                            .local_rank = LocalRank(local_rank),
                            .pid = 1000 + GroupCode(local_rank)});
  if (node().uses_sdk) {
    Take(agent::WorkerSaidHello{.round = place_->world.round, .local_rank = LocalRank(local_rank)});
  }
  parts_.workload.WorkerStarted(live().world);
}

void SimAgent::Perform(agent::StopGroup& effect) {
  if (parts_.trace.is_on()) {
    Tell("stops round " + std::to_string(effect.round.value) + " with grace " +
         std::to_string(effect.grace / milliseconds(1)) + " ms");
  }
  if (!guardian_is_alive_) return;
  if (!place_ || place_->world.round != effect.round) {
    Take(agent::GroupGone{.round = effect.round});
    return;
  }
  is_stopping_ = true;
  if (live().count > 0) parts_.worlds[live().world].is_broken = true;
  for (int i = 0; i < static_cast<int>(workers_.size()); ++i) {
    Duration takes =
        parts_.random.Between(parts_.options.term_takes / 2, parts_.options.term_takes);
    if (takes < effect.grace) {
      bool is_zero = parts_.options.exits_zero_on_term;
      DieAt(i, takes, {.signal = is_zero ? 0 : effect.first_signal});
    } else {
      Duration dying = parts_.random.Between(microseconds(200), milliseconds(2));
      DieAt(i, effect.grace + dying, {.signal = SIGKILL});
    }
  }
  SweepIfEmpty();
}

void SimAgent::KillWorkers(Duration within) {
  is_stopping_ = true;
  for (int i = 0; i < static_cast<int>(workers_.size()); ++i) {
    DieAt(i, parts_.random.Between(within / 4, within), {.signal = SIGKILL});
  }
}

// The earliest death counts.
void SimAgent::DieAt(int local_rank, Duration after, WorkerExit exit) {
  Worker& worker = workers_[local_rank];
  Instant at = parts_.queue.now() + after;
  if (worker.state == WorkerState::kEnded || at >= worker.dies_at) return;
  worker.dies_at = at;
  worker.exit = exit;
  parts_.queue.At(at, Act::kWorkerDies, options_.index, GroupCode(local_rank));
}

bool SimAgent::WorkerRuns(LocalRank local_rank) const {
  auto index = static_cast<size_t>(local_rank.value);
  return index < workers_.size() && workers_[index].state == WorkerState::kRunning;
}

bool SimAgent::EndWorker(uint32_t target, WorkerExit exit, bool is_genuine) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    auto local_rank = static_cast<int>((target + i) % workers_.size());
    Worker& worker = workers_[local_rank];
    if (worker.state != WorkerState::kRunning || is_stopping_) continue;
    worker.is_genuine = is_genuine;
    DieAt(local_rank, Duration(0), exit);
    return true;
  }
  return false;
}

void SimAgent::FinishWorker(LocalRank local_rank, Duration after) {
  if (WorkerRuns(local_rank)) DieAt(local_rank.value, after, {});
}

void SimAgent::FailWorkerSoon(LocalRank local_rank, Duration after) {
  if (WorkerRuns(local_rank)) DieAt(local_rank.value, after, {.code = 1});
}

void SimAgent::WorkerDied(int local_rank) {
  Worker& worker = workers_[local_rank];
  if (worker.state == WorkerState::kEnded || parts_.queue.now() < worker.dies_at) return;
  worker.state = WorkerState::kEnded;
  --live().count;
  WorkerFailure failure;
  failure.rank = Rank(place_->first_rank.value + local_rank);
  failure.local_rank = LocalRank(local_rank);
  failure.node_name = node().name;
  failure.pid = 1000 + GroupCode(local_rank);
  failure.exit = worker.exit;
  failure.failed_to_start = worker.cannot_start;
  // Judged before the agent hears of it: it sweeps the group when all have exited 0.
  bool is_success = worker.exit.Succeeded() && !is_stopping_;
  parts_.workload.WorkerEnded(live().world, failure, is_success, worker.is_genuine);
  if (guardian_is_alive_) {
    Take(agent::WorkerEnded{
        .round = place_->world.round, .local_rank = LocalRank(local_rank), .failure = failure});
  }
  SweepIfEmpty();
}

void SimAgent::SweepIfEmpty() {
  if (!is_stopping_ || is_sweeping_ || live().count > 0) return;
  is_sweeping_ = true;
  parts_.queue.After(parts_.random.Between(microseconds(200), microseconds(1500)), Act::kGroupSwept,
                     options_.index, GroupCode(0));
}

void SimAgent::CheckDeadline() {
  deadline_check_ = Instant::Never();
  if (!guardian_is_alive_ || deadline_.IsNever()) return;
  if (parts_.queue.now() < deadline_) {
    deadline_check_ = deadline_;
    parts_.queue.At(deadline_, Act::kGuardianDeadline, options_.index);
    return;
  }
  deadline_ = Instant::Never();
  if (live().count > 0) KillWorkers(milliseconds(2));
}

void SimAgent::Handle(const Due& due) {
  bool is_current = due.what / 64 == group_number_;
  switch (due.act) {
    case Act::kAgentTimer:
      timer_at_ = Instant::Never();
      if (!is_alive_ || is_frozen_) return;
      if (LocalNow() >= machine_.NextWakeup()) {
        Take(agent::TimePassed{});
      } else {
        WatchTimer();
      }
      return;
    case Act::kProbeArrives:
      parts_.network.ProbeArrives(options_.index, options_.host);
      return;
    case Act::kProbeAnswered:
      Take(agent::EndpointProbed{.is_refused = due.what == 1});
      return;
    case Act::kAgentReplays:
      if (is_alive_ && !is_frozen_ && stream_ >= 0 && attach_sent_) {
        parts_.network.Send(stream_, kept_[due.what]);
      }
      return;
    case Act::kGuardianDeadline:
      CheckDeadline();
      return;
    case Act::kGuardianKills:
      if (!guardian_is_alive_) {
        Take(agent::GuardianLost{.why = "killed"});
        return;
      }
      guardian_is_alive_ = is_alive_;
      KillWorkers(milliseconds(1));
      return;
    case Act::kWorkerStarts:
      if (is_current && guardian_is_alive_) StartWorker(due.what % 64);
      return;
    case Act::kWorkerDies:
      if (is_current) WorkerDied(due.what % 64);
      return;
    default:
      if (!is_current || !guardian_is_alive_ || !place_) return;
      RoundId round = place_->world.round;
      place_.reset();
      Take(agent::GroupGone{.round = round});
  }
}

}  // namespace muster::simulation
