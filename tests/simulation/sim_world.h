// The whole cluster in one thread: the rendezvous, the agents with their workers, the network, a
// virtual clock, and the faults of a plan. The machines are the real ones; the seed decides the
// rest, so a run can be repeated exactly. Not thread-safe; one object is one run.
//
//   RunResult result = RunSeed({.seed = 7});
//   if (!result.broken.empty()) ... result.trace ...
#ifndef MUSTER_TESTS_SIMULATION_SIM_WORLD_H_
#define MUSTER_TESTS_SIMULATION_SIM_WORLD_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/event_queue.h"
#include "tests/simulation/fault_plan.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/sim_agent.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_parts.h"
#include "tests/simulation/sim_random.h"
#include "tests/simulation/sim_rendezvous.h"
#include "tests/simulation/trace.h"
#include "tests/simulation/workload.h"

namespace muster::simulation {

// Faults that struck (not those that found nothing to strike), and what came of them.
struct RunResult {
  // Empty, or the first rule that was broken.
  std::string broken;
  // Agents, guardians, machines and workers that were killed or failed.
  int kills = 0;
  int partitions = 0;
  // Of the rendezvous' loop; frozen agents are counted apart.
  int stalls = 0;
  int freezes = 0;
  int rendezvous_restarts = 0;
  int rounds = 0;
  int64_t events = 0;
  bool succeeded = false;
  // Of all that happened, in order: equal for equal runs.
  uint64_t fingerprint = 0;
  std::deque<std::string> trace;
};

class SimWorld : private NetworkObserver {
 public:
  SimWorld(FaultPlan plan, uint64_t seed, bool is_traced);
  ~SimWorld() override;
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  RunResult Run();

  const Worlds& worlds() const { return worlds_; }

 private:
  // An agent that will start.
  struct Arrival {
    NodePlan node;
    // -1: on a machine of its own.
    HostIndex host = -1;
  };

  void Schedule();
  void Handle(const Due& due);
  void ToNetworkOrAgent(const Due& due);

  // ---- faults
  void Strike(int index);
  void StrikeAgent(const Fault& fault, int index, SimAgent& agent);
  void StrikeWorker(const Fault& fault, SimAgent& agent);
  void StrikeRendezvous(const Fault& fault);
  void StopAll(const Fault& fault);
  void EndFault(const Due& due);
  // -1 if there is none.
  AgentIndex ChooseAgent(const Fault& fault) const;
  void Replace(const Fault& fault, const SimAgent& agent);
  void StartAgent(const Arrival& arrival);
  // Whether no lease may notice that somebody stood still for this long, `extra` included: nobody's
  // workers may be touched then. Two such times that follow closely add up.
  bool IsHarmless(Duration lasts, Duration extra);
  // How long a fault that lasts this long may be felt.
  Instant FeltUntil(Duration lasts) const;

  bool NobodyIsLeft() const;
  void CheckSettled();

  // ---- NetworkObserver
  void OnAgentConnected(AgentIndex agent, StreamIndex stream) override;
  void OnAgentDisconnected(AgentIndex agent, StreamIndex stream, const char* why) override;
  void OnAgentMessage(AgentIndex agent, StreamIndex stream, RendezvousMessage message) override;
  void OnServerStreamOpened(SessionId session, AgentIndex agent) override;
  void OnServerMessage(SessionId session, AgentMessage message) override;
  void OnServerStreamEnded(SessionId session) override;

  const FaultPlan plan_;
  EventQueue queue_;
  SimRandom random_;
  Worlds worlds_;
  Trace trace_;
  std::vector<std::unique_ptr<SimAgent>> agents_;
  SimNetwork network_;
  SimParts parts_;
  Workload workload_;
  Invariants invariants_;
  SimRendezvous rendezvous_;
  std::vector<Duration> clock_offsets_;
  std::vector<Arrival> arrivals_;
  int arrivals_left_ = 0;
  bool has_settled_ = false;
  // When somebody last stood still, and when that was over.
  Instant hiccup_ends_;
  RunResult result_;
};

struct RunOptions {
  uint64_t seed = 0;
  bool is_traced = false;
};

// Makes the seed's plan and runs it.
RunResult RunSeed(const RunOptions& options);

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_SIM_WORLD_H_
