// What one seed does: the job and its nodes, how its network and its workers behave, and which
// faults strike when. Plain values, made by a pure function of the seed; a test may write its own.
#ifndef MUSTER_TESTS_SIMULATION_FAULT_PLAN_H_
#define MUSTER_TESTS_SIMULATION_FAULT_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent_machine.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster::simulation {

struct NodePlan {
  std::string name{};
  int worker_count = 1;
  std::optional<int> node_rank{};
  // After the start of the run.
  Duration joins_at{0};
  std::string topology{};
  // Comes with other terms than the job's, and must be refused.
  bool disagrees = false;
  // ... with another program, if it does; else with another number of nodes.
  bool has_other_program = false;
  // Its workers say Hello to their agent.
  bool uses_sdk = false;
};

enum class FaultKind {
  kWorkerFails,        // exits non-zero by itself
  kWorkerKilled,       // SIGKILL from outside, such as the OOM killer
  kWorkerCannotStart,  // the next worker's program isn't there
  kAgentKilled,        // SIGKILL; the guardian kills the workers
  kGuardianKilled,     // the agent kills the workers
  kAgentFrozen,        // SIGSTOP for a while; the guardian's deadline goes on
  kPowerOff,           // the whole machine is gone, and nobody hears of it
  kPartition,          // messages between a machine and the rendezvous stand still
  kStreamReset,        // a middlebox drops the connection
  kRendezvousCrash,    // comes back with empty memory
  kRendezvousStall,    // its loop stands still, events queue up
  kAgentStopped,       // SIGTERM to one agent
  kAllStopped,         // Ctrl-C everywhere
  kHostStopped,        // the process that hosts the rendezvous is told to stop
  kNodeDrained,        // `muster drain`
};
inline constexpr int kFaultKinds = 15;

const char* FaultKindName(FaultKind kind);

enum class Direction { kBoth, kToRendezvous, kToAgent };

struct Fault {
  FaultKind kind = FaultKind::kAgentKilled;
  Duration at{0};
  // Of a partition, freeze, stall, or the rendezvous' absence.
  Duration lasts{0};
  Direction direction = Direction::kBoth;
  // Chooses among those that can be struck at that time.
  uint32_t target = 0;
  // A replacement of the same name comes this long after; negative: none comes.
  Duration replaced_after{-1};
  // The replacement is on another machine, even while the old one may still run.
  bool is_replaced_elsewhere = false;
};

struct SimOptions {
  JobTerms terms;
  Duration lease = std::chrono::seconds(3);
  Duration startup_quiet = std::chrono::seconds(1);
  Duration reconnect_timeout{0};
  // How long a node is set aside at most.
  Duration set_aside_for = std::chrono::minutes(10);
  Duration shutdown_timeout{0};
  // One way, per message.
  Duration least_delay{0};
  Duration most_delay{0};
  agent::LostContact lost_contact = agent::LostContact::kAuto;
  // How long an unanswered connect takes to fail.
  Duration connect_timeout = std::chrono::seconds(2);
  // The rendezvous' timer rings up to this late; other events are handled meanwhile.
  Duration timer_lag = std::chrono::microseconds(500);
  // The rendezvous keeps its highest round over a crash.
  bool keeps_state = false;
  // Workers die of a dead peer by themselves, with exit code 1.
  bool has_followers = false;
  // Workers take this long over SIGTERM; longer than the shutdown timeout: they ignore it.
  Duration term_takes{0};
  // They exit 0 on SIGTERM, as polite programs do.
  bool exits_zero_on_term = false;
  // Zero: the workers make no checkpoints.
  Duration checkpoint_every{0};
  // A worker fails by itself whenever its world comes to this step or beyond; 0: nowhere.
  int64_t fails_at_step = 0;
  // All ranks have a shard, else rank 0 alone.
  bool is_sharded = false;
  // Workers ask at each step whether to save, so that nodes can leave after an agreed checkpoint.
  bool saves_when_asked = false;
  // Of 100 reports, this many are sent once more, later.
  int duplicate_percent = 0;
  // How long a complete world works until its workers exit 0, and how far apart they do.
  Duration works_for{0};
  Duration finish_spread{0};
};

struct FaultPlan {
  SimOptions options;
  std::vector<NodePlan> nodes;
  std::vector<Fault> faults;
  // No fault strikes or lasts after this, and the last replacement has started.
  Duration faults_end{0};
  // After faults_end, a complete world must run, or the job must have ended, within this.
  Duration settles_within{0};
};

FaultPlan MakeFaultPlan(uint64_t seed);

// faults_end and settles_within from the rest; for plans that a test writes.
void SetBounds(FaultPlan* plan);

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_FAULT_PLAN_H_
