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
  result.attach.facts.topology = self.node.topology;
  if (self.node.disagrees && self.node.has_other_program) {
    result.attach.terms.program = "eval.py";
  } else if (self.node.disagrees) {
    result.attach.terms.max_nodes += 1;
  }
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

}  // namespace muster::simulation
