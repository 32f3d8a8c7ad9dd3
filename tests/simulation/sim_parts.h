// What all parts of one simulated cluster share. SimWorld owns everything behind the references.
#ifndef MUSTER_TESTS_SIMULATION_SIM_PARTS_H_
#define MUSTER_TESTS_SIMULATION_SIM_PARTS_H_

#include <memory>
#include <vector>

#include "tests/simulation/event_queue.h"
#include "tests/simulation/fault_plan.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_random.h"
#include "tests/simulation/trace.h"
#include "tests/simulation/worlds.h"

namespace muster::simulation {

class Invariants;
class SimAgent;
class Workload;

struct SimParts {
  const SimOptions& options;
  EventQueue& queue;
  SimRandom& random;
  SimNetwork& network;
  Worlds& worlds;
  // Every life of every agent, by AgentIndex; only grows.
  std::vector<std::unique_ptr<SimAgent>>& agents;
  Workload& workload;
  Invariants& invariants;
  Trace& trace;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_SIM_PARTS_H_
