#include "agent/core/machine_trace.h"

#include <utility>

namespace muster::agent {
namespace {

std::string Ms(Duration d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

std::string RoundText(const World& world) { return "r" + std::to_string(world.round.value); }

std::string Text(const Connect&) { return "connect"; }
std::string Text(const Disconnect&) { return "disconnect"; }
std::string Text(const ProbeEndpoint&) { return "probe"; }

std::string Text(const Attach& m) {
  std::string text = "Attach";
  if (m.running) text += " running " + RoundText(m.running->world);
  if (m.running && m.running->succeeded) text += " succeeded";
  if (m.highest_round.value > 0) text += " highest " + std::to_string(m.highest_round.value);
  if (m.is_drained) text += " drained";
  return text;
}
std::string Text(const Heartbeat& m) {
  return "Heartbeat " + std::to_string(m.sequence) +
         (m.step < 0 ? "" : " step " + std::to_string(m.step)) + (m.can_save ? " can save" : "");
}
std::string Text(const WorkerFailed& m) {
  return "WorkerFailed " + RoundText(m.world) + " rank " + std::to_string(m.failure.rank.value) +
         " age " + Ms(m.failure.age);
}
std::string Text(const NodeSucceeded& m) { return "NodeSucceeded " + RoundText(m.world); }
std::string Text(const StopDone& m) {
  return "StopDone " + RoundText(m.world) +
         (m.last_step < 0 ? "" : " step " + std::to_string(m.last_step));
}
std::string Text(const ShardReport& m) { return "ShardReport " + std::to_string(m.commit.step); }
std::string Text(const CommitDone& m) { return "CommitDone " + std::to_string(m.commit.step); }
std::string Text(const Leave& m) { return (m.is_lost ? "Leave, lost: " : "Leave ") + m.reason; }
std::string Text(const WorkerSucceeded& m) { return "WorkerSucceeded " + RoundText(m.world); }
std::string Text(const LeaveRequest& m) { return "LeaveRequest " + m.reason; }
std::string Text(const CheckpointStep& m) { return "CheckpointStep " + std::to_string(m.step); }
std::string Text(const CheckpointStepKnown& m) {
  return "CheckpointStepKnown " + std::to_string(m.step);
}

std::string Text(const SendToRendezvous& e) {
  return "send " + std::visit([](const auto& m) { return Text(m); }, e.message);
}
std::string Text(const SpawnGroup& e) { return "spawn " + RoundText(e.place.world); }
std::string Text(const StopGroup& e) {
  return "stop r" + std::to_string(e.round.value) + " signal " + std::to_string(e.first_signal) +
         " grace " + Ms(e.grace);
}
std::string Text(const PingWorkers& e) { return "ping " + RoundText(e.world); }
std::string Text(const LookAtHungWorker& e) {
  return "look at hung " + std::to_string(e.local_rank.value);
}
std::string Text(const KillWorker& e) { return "kill " + std::to_string(e.local_rank.value); }
std::string Text(const AbortCollectives& e) {
  return "abort " + RoundText(e.world) + " culprit " + std::to_string(e.culprit.value);
}
std::string Text(const RenewDeadline& e) {
  return e.deadline.IsNever() ? "renew never" : "renew " + Ms(e.deadline.since_origin());
}
std::string Text(const AnswerCommit& e) {
  return std::string(e.is_granted ? "grant" : "refuse") + " rank " + std::to_string(e.rank.value) +
         " step " + std::to_string(e.commit.step);
}
std::string Text(const AskForCheckpoint&) { return "ask for checkpoint"; }
std::string Text(const TellCheckpoint& e) { return "tell checkpoint " + std::to_string(e.step); }
std::string Text(const AgreeOnCheckpoint&) { return "agree on checkpoint"; }
std::string Text(const Show&) { return "show"; }
std::string Text(const End& e) { return "end " + std::to_string(e.verdict.exit_code); }

Incarnation IncarnationOf(uint8_t number) {
  Incarnation incarnation;
  incarnation.bytes.fill(number);
  return incarnation;
}

}  // namespace

std::string EffectText(const AgentEffect& effect) {
  return std::visit([](const auto& e) { return Text(e); }, effect);
}

AgentOptions TracedMachine::DefaultOptions() {
  AgentOptions options;
  options.attach.node_name = "n0";
  options.attach.address = "10.0.0.1";
  options.attach.worker_count = 2;
  options.attach.terms.run_id = "job";
  options.endpoint = "10.0.0.9:29400";
  return options;
}

TracedMachine::TracedMachine(AgentOptions options)
    : machine_(std::move(options), IncarnationOf(1), Instant(Duration(0))) {
  effects_ = machine_.Start();
}

std::string TracedMachine::At(int64_t ms, const AgentEvent& event) {
  StepInput input;
  input.now = Instant(std::chrono::milliseconds(ms));
  input.fresh_incarnation = IncarnationOf(fresh_++);
  effects_ = machine_.Step(input, event);
  std::string text;
  for (const AgentEffect& effect : effects_) {
    if (const auto* show = std::get_if<Show>(&effect)) shown_ = show->text;
    if (const auto* end = std::get_if<End>(&effect)) verdict_ = end->verdict;
    if (!text.empty()) text += "; ";
    text += EffectText(effect);
  }
  return text.empty() ? "-" : text;
}

int64_t TracedMachine::wakeup_ms() const {
  Instant next = machine_.NextWakeup();
  if (next.IsNever()) return -1;
  return std::chrono::duration_cast<std::chrono::milliseconds>(next.since_origin()).count();
}

World WorldOf(uint64_t round) {
  World world;
  world.round = RoundId(round);
  world.id.bytes.fill(static_cast<uint8_t>(round));
  return world;
}

StartRound StartOf(uint64_t round, int attempt) {
  StartRound start;
  start.world = WorldOf(round);
  start.group_world_size = 2;
  start.group_rank = GroupRank(1);
  start.first_rank = Rank(2);
  start.world_size = 4;
  start.attempt = attempt;
  return start;
}

StopRound StopOf(uint64_t round, StopCause cause) {
  StopRound stop;
  stop.world = WorldOf(round);
  stop.cause = cause;
  stop.reason = "rank 0 failed";
  stop.culprit = Rank(0);
  return stop;
}

WorkerEnded EndOf(uint64_t round, int local_rank, WorkerExit exit) {
  WorkerEnded ended;
  ended.round = RoundId(round);
  ended.local_rank = LocalRank(local_rank);
  ended.failure.rank = Rank(2 + local_rank);
  ended.failure.local_rank = LocalRank(local_rank);
  ended.failure.node_name = "n0";
  ended.failure.pid = 100 + local_rank;
  ended.failure.exit = exit;
  return ended;
}

}  // namespace muster::agent
