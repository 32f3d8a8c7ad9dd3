#include "tests/simulation/fault_plan.h"

#include <algorithm>

#include "base/version.h"
#include "tests/simulation/sim_random.h"

namespace muster::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Faults strike within this.
constexpr Duration kWindow = seconds(24);

template <class T, size_t N>
T OneOf(SimRandom& random, const T (&values)[N]) {
  return values[random.Below(static_cast<int>(N))];
}

void ChooseTerms(SimRandom& random, FaultPlan* plan) {
  JobTerms& terms = plan->options.terms;
  terms.run_id = "sim";
  terms.version = kVersion;
  terms.is_static = random.Chance(20);
  terms.max_nodes = random.Between(1, 8);
  terms.min_nodes = terms.is_static ? terms.max_nodes : random.Between(1, terms.max_nodes);
  terms.max_restarts = random.Between(0, 5);
  terms.join_timeout = random.Between(seconds(5), seconds(15));
  constexpr ScaleUp kScaleUps[] = {ScaleUp::kAuto, ScaleUp::kAuto, ScaleUp::kImmediate,
                                   ScaleUp::kCheckpoint};
  terms.scale_up = OneOf(random, kScaleUps);
  terms.last_call_timeout = random.Between(milliseconds(50), seconds(2));
}

void ChooseNodes(SimRandom& random, FaultPlan* plan) {
  const JobTerms& terms = plan->options.terms;
  int count = terms.max_nodes;
  if (!terms.is_static) {
    count = random.Chance(60) ? terms.max_nodes : random.Between(terms.min_nodes, terms.max_nodes);
    if (random.Chance(35)) count = terms.max_nodes + random.Between(1, 2);
  }
  bool are_alike = random.Chance(70);
  int worker_count = random.Between(1, 3);
  constexpr int kSdkPercents[] = {0, 0, 50, 100};
  int sdk_percent = OneOf(random, kSdkPercents);
  for (int i = 0; i < count; ++i) {
    NodePlan node{.name = "n" + std::to_string(i), .worker_count = worker_count};
    if (!are_alike) worker_count = random.Between(1, 3);
    if (terms.is_static) node.node_rank = i;
    node.uses_sdk = random.Chance(sdk_percent);
    node.joins_at = random.Between(milliseconds(0), milliseconds(300));
    if (random.Chance(10)) node.joins_at = random.Between(seconds(1), kWindow / 2);
    plan->nodes.push_back(node);
  }
  if (random.Chance(10)) {
    plan->nodes.push_back(
        {.name = "other", .joins_at = random.Between(seconds(2), kWindow), .disagrees = true});
    if (terms.is_static) plan->nodes.back().node_rank = 0;
  }
}

void ChooseBehaviour(SimRandom& random, SimOptions* options) {
  constexpr Duration kLeases[] = {seconds(1), milliseconds(1500), seconds(2), seconds(3),
                                  seconds(5)};
  constexpr Duration kMostDelays[] = {microseconds(300), milliseconds(2), milliseconds(8),
                                      milliseconds(40)};
  options->lease = OneOf(random, kLeases);
  options->reconnect_timeout = random.Between(seconds(4), seconds(10));
  if (random.Chance(20)) options->terms.max_node_failures = random.Between(2, 4);
  options->keeps_state = random.Chance(40);
  constexpr agent::LostContact kModes[] = {agent::LostContact::kAuto, agent::LostContact::kAuto,
                                           agent::LostContact::kAuto, agent::LostContact::kGoOn,
                                           agent::LostContact::kStop};
  options->lost_contact = OneOf(random, kModes);
  options->most_delay = OneOf(random, kMostDelays);
  options->least_delay = options->most_delay / 10;
  options->shutdown_timeout = random.Between(milliseconds(100), seconds(2));
  options->term_takes =
      random.Chance(20) ? seconds(60) : random.Between(milliseconds(1), milliseconds(300));
  options->exits_zero_on_term = random.Chance(40);
  options->has_followers = random.Chance(50);
  if (random.Chance(75)) {
    options->checkpoint_every = random.Between(milliseconds(200), milliseconds(1500));
  }
  options->is_sharded = random.Chance(50);
  options->saves_when_asked = options->checkpoint_every > Duration(0) && random.Chance(60);
  if (random.Chance(50)) options->duplicate_percent = random.Between(5, 40);
  options->works_for = random.Chance(12) ? random.Between(seconds(1), seconds(6))
                                         : kWindow + random.Between(seconds(1), seconds(6));
  options->finish_spread = random.Between(milliseconds(0), milliseconds(500));
  if (random.Chance(20)) options->finish_spread = seconds(3);
}

// The rules of restarts, losses and places. They draw from a source of their own, so that seeds
// that are older than they keep their plans.
void ChooseRules(SimRandom random, FaultPlan* plan) {
  SimOptions& options = plan->options;
  JobTerms& terms = options.terms;
  terms.program = "train.py";
  options.set_aside_for = random.Between(seconds(2), seconds(8));
  if (random.Chance(20)) terms.max_restarts_per_hour = random.Between(1, 3);
  if (random.Chance(25)) {
    terms.max_early_failures = random.Between(1, 3);
    terms.min_uptime = random.Between(milliseconds(200), seconds(4));
  }
  if (random.Chance(50)) terms.max_stuck_restarts = random.Between(1, 3);
  if (options.checkpoint_every > Duration(0) && random.Chance(15)) {
    options.fails_at_step = random.Between(1, 60);
  }
  const bool has_node_ranks = !terms.is_static && random.Chance(20);
  int node_rank = random.Between(0, 2);
  for (NodePlan& node : plan->nodes) {
    if (random.Chance(30)) node.topology = "rack" + std::to_string(random.Between(1, 12));
    // In a static job another program is no disagreement.
    if (node.disagrees) node.has_other_program = random.Chance(50) && !terms.is_static;
    if (!has_node_ranks || node.disagrees) continue;
    node.node_rank = node_rank;
    node_rank += random.Between(1, 2);
  }
  if (random.Chance(25)) options.timer_lag = random.Between(milliseconds(20), milliseconds(100));
}

class FaultChooser {
 public:
  FaultChooser(SimRandom& random, FaultPlan* plan) : random_(random), plan_(plan) {}

  Fault& Add(FaultKind kind) {
    plan_->faults.push_back({.kind = kind,
                             .at = random_.Between(seconds(1), kWindow),
                             .target = static_cast<uint32_t>(random_.Next())});
    return plan_->faults.back();
  }

  // A loss of a node that a replacement may follow.
  Fault& AddLoss(FaultKind kind) {
    Fault& fault = Add(kind);
    if (random_.Chance(90)) {
      fault.replaced_after = random_.Between(milliseconds(60), milliseconds(2500));
      fault.is_replaced_elsewhere = random_.Chance(30);
    }
    return fault;
  }

  void ChooseWorkerFaults() {
    int budget = plan_->options.terms.max_restarts;
    int count = random_.Between(0, std::min(budget, 3));
    if (random_.Chance(25)) count = budget + random_.Between(1, 2);
    for (int i = 0; i < count; ++i) {
      Add(random_.Chance(50) ? FaultKind::kWorkerFails : FaultKind::kWorkerKilled);
    }
    if (random_.Chance(2)) Add(FaultKind::kWorkerCannotStart);
  }

  void ChooseLosses() {
    for (int i = random_.Between(5, 9); i > 0; --i) AddLoss(FaultKind::kAgentKilled);
    for (int i = random_.Between(0, 2); i > 0; --i) AddLoss(FaultKind::kPowerOff);
    if (random_.Chance(15)) AddLoss(FaultKind::kGuardianKilled);
    for (int i = random_.Between(0, 2); i > 0; --i) {
      Fault& fault = Add(FaultKind::kAgentFrozen);
      fault.lasts = random_.Between(milliseconds(10), plan_->options.lease * 2);
    }
  }

  void ChooseNetworkFaults() {
    for (int i = random_.Between(1, 3); i > 0; --i) {
      constexpr Direction kDirections[] = {Direction::kBoth, Direction::kBoth,
                                           Direction::kToRendezvous, Direction::kToAgent};
      Fault& fault = Add(FaultKind::kPartition);
      fault.lasts = random_.Between(milliseconds(20), plan_->options.lease * 3);
      fault.direction = OneOf(random_, kDirections);
      if (random_.Chance(25)) {
        fault.replaced_after = random_.Between(milliseconds(50), fault.lasts);
        fault.is_replaced_elsewhere = true;
      }
    }
    for (int i = random_.Between(0, 2); i > 0; --i) Add(FaultKind::kStreamReset);
  }

  void ChooseRendezvousFaults() {
    for (int i = random_.Between(1, 2); i > 0; --i) {
      Fault& fault = Add(FaultKind::kRendezvousCrash);
      fault.lasts = random_.Between(milliseconds(20), milliseconds(1500));
      if (random_.Chance(25)) {
        fault.lasts = random_.Between(milliseconds(20), plan_->options.reconnect_timeout);
      }
    }
    for (int i = random_.Between(1, 2); i > 0; --i) {
      Fault& fault = Add(FaultKind::kRendezvousStall);
      fault.lasts = random_.Between(milliseconds(10), plan_->options.lease * 2);
    }
  }

  void ChooseStops() {
    if (random_.Chance(15)) Add(FaultKind::kAgentStopped);
    // A job that all have left is forgotten: whoever disagrees would open it anew.
    const bool all_agree = std::none_of(plan_->nodes.begin(), plan_->nodes.end(),
                                        [](const NodePlan& node) { return node.disagrees; });
    for (int i = all_agree && random_.Chance(40) ? random_.Between(1, 2) : 0; i > 0; --i) {
      Fault& drained = Add(FaultKind::kNodeDrained);
      // Its workers run on for a while, so the one that comes for it is on another machine.
      drained.is_replaced_elsewhere = true;
      if (random_.Chance(70)) {
        drained.replaced_after = random_.Between(milliseconds(60), milliseconds(2500));
      }
      // Two that go together, at times.
      const Duration at = drained.at;
      if (random_.Chance(30)) Add(FaultKind::kAgentStopped).at = at + milliseconds(200);
    }
    if (random_.Chance(5)) Add(FaultKind::kAllStopped).at += kWindow / 2;
    if (random_.Chance(3)) Add(FaultKind::kHostStopped).at += kWindow / 2;
  }

 private:
  SimRandom& random_;
  FaultPlan* plan_;
};

}  // namespace

const char* FaultKindName(FaultKind kind) {
  constexpr const char* kNames[kFaultKinds] = {
      "worker fails",    "worker killed",    "worker cannot start", "agent killed",
      "guardian killed", "agent frozen",     "power off",           "partition",
      "stream reset",    "rendezvous crash", "rendezvous stall",    "agent stopped",
      "all stopped",     "host stopped",     "node drained"};
  return kNames[static_cast<int>(kind)];
}

void SetBounds(FaultPlan* plan) {
  const SimOptions& options = plan->options;
  Duration end{0};
  for (const NodePlan& node : plan->nodes) end = std::max(end, node.joins_at);
  for (const Fault& fault : plan->faults) {
    end = std::max(end, fault.at + std::max(fault.lasts, fault.replaced_after));
  }
  plan->faults_end = end + milliseconds(100);
  // One after the other at the worst: an agent finds out that its contact is gone (a lease) and
  // comes back (a connect's time-out), a restarted rendezvous is quiet and waits for a running
  // world (reconnect_timeout), then a world is stopped, the last call is over, or the job is below
  // MIN (join_timeout) and the agents left without a rendezvous' word give up.
  plan->settles_within = 2 * options.lease + options.connect_timeout + options.startup_quiet +
                         options.reconnect_timeout + 4 * options.shutdown_timeout +
                         options.terms.last_call_timeout + options.terms.join_timeout + seconds(2);
}

FaultPlan MakeFaultPlan(uint64_t seed) {
  SimRandom random(seed);
  FaultPlan plan;
  ChooseTerms(random, &plan);
  ChooseBehaviour(random, &plan.options);
  ChooseNodes(random, &plan);
  FaultChooser chooser(random, &plan);
  chooser.ChooseWorkerFaults();
  chooser.ChooseLosses();
  chooser.ChooseNetworkFaults();
  chooser.ChooseRendezvousFaults();
  chooser.ChooseStops();
  ChooseRules(SimRandom(seed + (uint64_t{1} << 40)), &plan);
  SetBounds(&plan);
  return plan;
}

}  // namespace muster::simulation
