#include "tests/simulation/sim_world.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A run takes a few thousand; more is a storm.
constexpr int64_t kMostEvents = 200000;
// Between the workers' end and the last agent's.
constexpr Duration kEndPatience = seconds(5);
// Of an agent between two tries to reach the rendezvous.
constexpr Duration kLongestPause = milliseconds(250);

}  // namespace

SimWorld::SimWorld(FaultPlan plan, uint64_t seed, bool is_traced)
    : plan_(std::move(plan)),
      random_(seed ^ 0x5bd1e995u),
      network_(plan_.options, queue_, random_, *this),
      parts_{plan_.options, queue_,    random_,     network_, worlds_,
             agents_,       workload_, invariants_, trace_},
      workload_(parts_),
      invariants_(parts_),
      rendezvous_(parts_, random_.Between(Duration(0), seconds(500))) {
  if (is_traced) trace_.TurnOn();
}

SimWorld::~SimWorld() = default;

void SimWorld::Schedule() {
  Instant start = queue_.now();
  rendezvous_.Start();
  for (const NodePlan& node : plan_.nodes) {
    queue_.At(start + node.joins_at, Act::kAgentStarts, static_cast<int>(arrivals_.size()));
    arrivals_.push_back({.node = node});
    ++arrivals_left_;
  }
  for (size_t i = 0; i < plan_.faults.size(); ++i) {
    queue_.At(start + plan_.faults[i].at, Act::kFault, 0, static_cast<int>(i));
  }
  Instant settled = start + plan_.faults_end + plan_.settles_within;
  queue_.At(settled, Act::kMustBeSettled);
  // The world that runs by then may be re-formed once, for a node that comes late; then it works.
  queue_.At(std::max(settled, workload_.end_of_work()) + plan_.settles_within +
                2 * plan_.options.finish_spread + kEndPatience,
            Act::kMustHaveEnded);
}

RunResult SimWorld::Run() {
  Schedule();
  while (!queue_.is_empty() && !invariants_.is_broken()) {
    if (++result_.events > kMostEvents) invariants_.Break("a storm of events");
    Due due = queue_.Pop();
    result_.fingerprint =
        (result_.fingerprint ^ static_cast<uint64_t>(due.at.since_origin().count()) ^
         (static_cast<uint64_t>(due.act) << 56)) *
        0x100000001b3u;
    Handle(due);
    if (NobodyIsLeft()) break;
  }
  result_.broken = invariants_.broken();
  result_.rounds = invariants_.rounds_started();
  result_.succeeded = invariants_.job_has_succeeded();
  result_.trace = trace_.lines();
  return result_;
}

bool SimWorld::NobodyIsLeft() const {
  if (arrivals_left_ > 0) return false;
  return std::none_of(agents_.begin(), agents_.end(),
                      [](const auto& agent) { return agent->is_alive(); });
}

void SimWorld::Handle(const Due& due) {
  switch (due.act) {
    case Act::kRendezvousTimer:
      // `who` is the life that the timer was set in.
      if (rendezvous_.is_up() && due.who == rendezvous_.life()) rendezvous_.HandleTimer();
      break;
    case Act::kRendezvousStarts:
      rendezvous_.Start();
      break;
    case Act::kRendezvousThaws:
      if (rendezvous_.is_up() && due.who == rendezvous_.life()) rendezvous_.Thaw();
      break;
    case Act::kFault:
      Strike(due.what);
      break;
    case Act::kFaultEnds:
      EndFault(due);
      break;
    case Act::kAgentStarts:
      StartAgent(arrivals_[due.who]);
      break;
    case Act::kMustBeSettled:
      if (!has_settled_) {
        invariants_.Break("the job has not settled " +
                          std::to_string(plan_.settles_within / milliseconds(1)) +
                          " ms after the last fault");
      }
      break;
    case Act::kMustHaveEnded:
      for (const auto& agent : agents_) {
        if (!agent->is_alive()) continue;
        invariants_.Break("node " + agent->node().name +
                          "'s agent has not ended long after its workers could");
      }
      break;
    default:
      ToNetworkOrAgent(due);
  }
  CheckSettled();
}

void SimWorld::ToNetworkOrAgent(const Due& due) {
  switch (due.act) {
    case Act::kDeliver:
    case Act::kSideBreaks:
    case Act::kConnectArrives:
    case Act::kConnectRefused:
    case Act::kConnectTimesOut:
      network_.Handle(due);
      return;
    case Act::kCheckpoint:
    case Act::kShardWritten:
    case Act::kPublished:
    case Act::kStepsReported:
    case Act::kStepNamed:
    case Act::kStepKnown:
    case Act::kAgreedSave:
    case Act::kWorldFinishes:
      workload_.Handle(due);
      return;
    default:
      agents_[due.who]->Handle(due);
  }
}

void SimWorld::CheckSettled() {
  if (has_settled_ || queue_.now() - Instant(seconds(1000)) < plan_.faults_end) return;
  bool nobody = NobodyIsLeft();
  has_settled_ = nobody || rendezvous_.has_ended() ||
                 (invariants_.RunsWell() && rendezvous_.is_up() &&
                  rendezvous_.state() == rendezvous::JobState::kRunning);
}

// ---- faults --------------------------------------------------------------------------------

void SimWorld::StartAgent(const Arrival& arrival) {
  --arrivals_left_;
  // Where nobody has told the rendezvous the job's terms, the first to come does.
  if (arrival.node.disagrees && !invariants_.AnyoneIsAttached()) return;
  HostIndex host = arrival.host;
  if (host < 0) {
    host = network_.AddHost();
    clock_offsets_.push_back(random_.Between(Duration(0), seconds(500)));
  }
  auto index = static_cast<AgentIndex>(agents_.size());
  agents_.push_back(
      std::make_unique<SimAgent>(parts_, SimAgent::Options{.index = index,
                                                           .host = host,
                                                           .node = arrival.node,
                                                           .clock_offset = clock_offsets_[host]}));
  if (trace_.is_on()) {
    trace_.Add(queue_.now(), arrival.node.name + "#" + std::to_string(index) + " starts on host " +
                                 std::to_string(host));
  }
  agents_.back()->Start();
}

AgentIndex SimWorld::ChooseAgent(const Fault& fault) const {
  auto count = static_cast<uint32_t>(agents_.size());
  for (uint32_t i = 0; i < count; ++i) {
    auto index = static_cast<AgentIndex>((fault.target + i) % count);
    const SimAgent& agent = *agents_[index];
    bool can_be = agent.is_alive() && !agent.is_frozen() && !agent.node().disagrees &&
                  agent.guardian_is_alive();
    bool needs_worker =
        fault.kind == FaultKind::kWorkerFails || fault.kind == FaultKind::kWorkerKilled;
    if (can_be && (!needs_worker || agent.world() >= 0)) return index;
  }
  return -1;
}

void SimWorld::Strike(int index) {
  const Fault& fault = plan_.faults[index];
  if (invariants_.job_has_ended()) return;
  if (fault.kind == FaultKind::kRendezvousCrash || fault.kind == FaultKind::kRendezvousStall ||
      fault.kind == FaultKind::kHostStopped) {
    StrikeRendezvous(fault);
    return;
  }
  if (fault.kind == FaultKind::kAllStopped) {
    StopAll(fault);
    return;
  }
  AgentIndex target = ChooseAgent(fault);
  if (target < 0) return;
  if (trace_.is_on()) {
    trace_.Add(queue_.now(), std::string("FAULT ") + FaultKindName(fault.kind) + " " +
                                 agents_[target]->node().name + "#" + std::to_string(target) +
                                 " for " + std::to_string(fault.lasts / milliseconds(1)) + " ms");
  }
  StrikeAgent(fault, index, *agents_[target]);
}

bool SimWorld::IsHarmless(Duration lasts, Duration extra) {
  const Duration lease = plan_.options.lease;
  bool is_alone = queue_.now() > hiccup_ends_ + lease;
  hiccup_ends_ = std::max(hiccup_ends_, queue_.now() + lasts + extra);
  // The last acknowledged heartbeat may be a third of a lease old, and the lease ends early for the
  // agent.
  Duration usable = lease - std::min<Duration>(milliseconds(500), lease / 4) - lease / 3;
  return is_alone && lasts + extra + 8 * plan_.options.most_delay + milliseconds(10) < usable;
}

Instant SimWorld::FeltUntil(Duration lasts) const {
  return queue_.now() + lasts + 2 * plan_.options.lease + plan_.options.connect_timeout;
}

void SimWorld::StrikeAgent(const Fault& fault, int index, SimAgent& agent) {
  auto target =
      static_cast<AgentIndex>(std::find_if(agents_.begin(), agents_.end(),
                                           [&](const auto& a) { return a.get() == &agent; }) -
                              agents_.begin());
  switch (fault.kind) {
    case FaultKind::kAgentKilled:
      ++result_.kills;
      agent.Kill();
      break;
    case FaultKind::kGuardianKilled:
      ++result_.kills;
      agent.KillGuardian();
      break;
    case FaultKind::kPowerOff:
      ++result_.kills;
      agent.PowerOff();
      break;
    case FaultKind::kAgentFrozen:
      ++result_.freezes;
      agent.Freeze();
      queue_.After(fault.lasts, Act::kFaultEnds, target, index);
      if (IsHarmless(fault.lasts, Duration(0))) return;
      break;
    case FaultKind::kPartition:
      ++result_.partitions;
      network_.Block(agent.host(), fault.direction);
      queue_.After(fault.lasts, Act::kFaultEnds, agent.host(), index);
      break;
    case FaultKind::kStreamReset:
      network_.Reset(agent.host());
      break;
    case FaultKind::kAgentStopped:
      agent.StopBySignal(SIGTERM);
      break;
    case FaultKind::kNodeDrained:
      if (!rendezvous_.is_up() || rendezvous_.is_stalled()) return;
      if (!invariants_.IsMember(agent.incarnation())) return;
      worlds_.Drain(target);
      invariants_.IsDrained(agent.incarnation());
      rendezvous_.DrainNode(agent.incarnation());
      Replace(fault, agent);
      return;
    default:
      StrikeWorker(fault, agent);
      return;
  }
  worlds_.Trouble(target, agent.is_alive() && agent.guardian_is_alive() &&
                                  fault.kind != FaultKind::kAgentStopped
                              ? FeltUntil(fault.lasts)
                              : Instant::Never());
  Replace(fault, agent);
}

void SimWorld::StrikeWorker(const Fault& fault, SimAgent& agent) {
  if (fault.kind == FaultKind::kWorkerCannotStart) {
    agent.LetNextWorkerNotStart();
    return;
  }
  WorkerExit exit{.code = 3};
  if (fault.kind == FaultKind::kWorkerKilled) exit = {.signal = SIGKILL};
  if (agent.EndWorker(fault.target, exit, /*is_genuine=*/true)) ++result_.kills;
}

void SimWorld::Replace(const Fault& fault, const SimAgent& agent) {
  if (fault.replaced_after < Duration(0)) return;
  queue_.After(fault.replaced_after, Act::kAgentStarts, static_cast<int>(arrivals_.size()));
  arrivals_.push_back(
      {.node = agent.node(), .host = fault.is_replaced_elsewhere ? -1 : agent.host()});
  ++arrivals_left_;
}

void SimWorld::StrikeRendezvous(const Fault& fault) {
  if (!rendezvous_.is_up() || rendezvous_.is_stalled()) return;
  if (trace_.is_on()) {
    trace_.Add(queue_.now(), std::string("FAULT ") + FaultKindName(fault.kind) + " for " +
                                 std::to_string(fault.lasts / milliseconds(1)) + " ms");
  }
  if (fault.kind == FaultKind::kHostStopped) {
    worlds_.Trouble(-1, Instant::Never());
    rendezvous_.StopHost("the host was stopped", 143);
    return;
  }
  if (fault.kind == FaultKind::kRendezvousStall) {
    ++result_.stalls;
    rendezvous_.Stall();
    queue_.After(fault.lasts, Act::kRendezvousThaws, rendezvous_.life());
    if (!IsHarmless(fault.lasts, Duration(0))) worlds_.Trouble(-1, FeltUntil(fault.lasts));
    return;
  }
  ++result_.rendezvous_restarts;
  rendezvous_.Crash();
  queue_.After(fault.lasts, Act::kRendezvousStarts);
  // A world that runs goes on over a short absence; one that was being formed may fall apart.
  if (IsHarmless(fault.lasts, kLongestPause)) {
    worlds_.TroubleIncomplete();
  } else {
    worlds_.Trouble(-1, FeltUntil(fault.lasts));
  }
}

void SimWorld::StopAll(const Fault& /*fault*/) {
  worlds_.Trouble(-1, Instant::Never());
  if (trace_.is_on()) trace_.Add(queue_.now(), "FAULT all stopped");
  for (auto& agent : agents_) {
    if (agent->is_alive() && !agent->is_frozen()) agent->StopBySignal(SIGINT);
  }
}

void SimWorld::EndFault(const Due& due) {
  const Fault& fault = plan_.faults[due.what];
  if (fault.kind == FaultKind::kPartition) {
    if (trace_.is_on()) {
      trace_.Add(queue_.now(), "partition of host " + std::to_string(due.who) + " heals");
    }
    network_.Unblock(due.who, fault.direction);
    return;
  }
  SimAgent& agent = *agents_[due.who];
  if (trace_.is_on()) {
    trace_.Add(queue_.now(), agent.node().name + "#" + std::to_string(due.who) + " thaws");
  }
  if (agent.is_alive() && agent.is_frozen()) agent.Thaw();
}

// ---- the network ---------------------------------------------------------------------------

void SimWorld::OnAgentConnected(AgentIndex agent, StreamIndex stream) {
  agents_[agent]->Connected(stream);
}

void SimWorld::OnAgentDisconnected(AgentIndex agent, StreamIndex stream, const char* why) {
  agents_[agent]->Disconnected(stream, why);
}

void SimWorld::OnAgentMessage(AgentIndex agent, StreamIndex stream, RendezvousMessage message) {
  agents_[agent]->Said(stream, std::move(message));
}

void SimWorld::OnServerStreamOpened(SessionId session, AgentIndex agent) {
  invariants_.SessionOpened(session, agent);
}

void SimWorld::OnServerMessage(SessionId session, AgentMessage message) {
  rendezvous_.MessageCame(session, std::move(message));
}

void SimWorld::OnServerStreamEnded(SessionId session) { rendezvous_.StreamEnded(session); }

RunResult RunSeed(const RunOptions& options) {
  SimWorld world(MakeFaultPlan(options.seed), options.seed, options.is_traced);
  return world.Run();
}

}  // namespace muster::simulation
