// The part of a simulated agent by which its workers agree on a step to save after.
#include "tests/simulation/sim_agent.h"
#include "tests/simulation/workload.h"

namespace muster::simulation {

void SimAgent::ReportStep(const World& world, LocalRank local_rank, int64_t step) {
  Take(agent::WorkerReportedStep{.world = world,
                                 .local_rank = local_rank,
                                 .step = step,
                                 .can_save = parts_.options.saves_when_asked});
}

void SimAgent::AnnounceCheckpoint(const World& world, int64_t step) {
  Take(agent::WorkerAnnouncedCheckpoint{.world = world, .step = step});
}

void SimAgent::KnowCheckpoint(const World& world, LocalRank local_rank, int64_t step) {
  Take(agent::WorkerKnowsCheckpoint{.world = world, .local_rank = local_rank, .step = step});
}

void SimAgent::Perform(agent::AskForCheckpoint& effect) { parts_.workload.Asked(effect.world); }

void SimAgent::Perform(agent::TellCheckpoint& effect) {
  parts_.workload.Told(options_.index, effect);
}

void SimAgent::Perform(agent::AgreeOnCheckpoint& effect) { parts_.workload.Agreed(effect.world); }

}  // namespace muster::simulation
