// Plants a fault into the machines and looks for the seed that finds it. Only in programs that link
// sim_world_with_faults; one thread.
#ifndef MUSTER_TESTS_SIMULATION_PLANTED_FAULTS_H_
#define MUSTER_TESTS_SIMULATION_PLANTED_FAULTS_H_

#include <cstdint>
#include <string>

#include "base/planted_fault.h"
#include "tests/simulation/sim_world.h"

namespace muster::simulation {

struct PlantedFaultName {
  PlantedFault fault;
  const char* name;
};

inline constexpr PlantedFaultName kPlantedFaults[] = {
    {PlantedFault::kFencingOff, "fencing off"},
    {PlantedFault::kLeaseComparedBackwards, "lease compared backwards"},
    {PlantedFault::kBudgetChargedTwice, "budget charged twice"},
    {PlantedFault::kNoRecovering, "no Recovering"},
    {PlantedFault::kStopNotAwaited, "stop not awaited"},
    {PlantedFault::kRanksHaveHoles, "ranks have holes"},
    {PlantedFault::kBelowMinRuns, "below MIN runs"},
    {PlantedFault::kRoundNumberReused, "round number reused"},
    {PlantedFault::kStaleCommitGranted, "stale commit granted"},
    {PlantedFault::kLossCharged, "loss charged"},
    {PlantedFault::kSpareForgotten, "spare forgotten"},
    {PlantedFault::kSuccessTooEarly, "success too early"},
    {PlantedFault::kHourForgotten, "hour forgotten"},
    {PlantedFault::kProgressIsStuck, "progress is stuck"},
    {PlantedFault::kSetAsideIgnored, "set aside ignored"},
    {PlantedFault::kGrowsAfterSuccess, "grows after success"},
    {PlantedFault::kLeaverKept, "leaver kept"},
    {PlantedFault::kStepNotAwaited, "step not awaited"},
    {PlantedFault::kCommitNotKept, "commit not kept"},
    {PlantedFault::kDueTimerPutOff, "due timer put off"},
};

struct Finding {
  // 0: no seed found it.
  uint64_t seed = 0;
  std::string broken;
};

// Runs seeds first..first+count-1 with `fault` planted until a rule is broken.
inline Finding FindPlanted(PlantedFault fault, uint64_t first, uint64_t count) {
  planted_fault = fault;
  Finding finding;
  for (uint64_t seed = first; seed < first + count && finding.seed == 0; ++seed) {
    RunResult result = RunSeed({.seed = seed});
    if (!result.broken.empty()) finding = {.seed = seed, .broken = result.broken};
  }
  planted_fault = PlantedFault::kNone;
  return finding;
}

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_PLANTED_FAULTS_H_
