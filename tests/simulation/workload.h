// What the workers of a world do: they start, make checkpoints together, die of a lost peer, and
// come to their end. One lock-step model for all, since that is what collectives enforce: a world
// with a dead worker gets no further. Owned by SimWorld; one thread.
#ifndef MUSTER_TESTS_SIMULATION_WORKLOAD_H_
#define MUSTER_TESTS_SIMULATION_WORKLOAD_H_

#include "agent/core/agent_machine.h"
#include "tests/simulation/sim_parts.h"

namespace muster::simulation {

class Workload {
 public:
  explicit Workload(SimParts& parts) : parts_(parts) {}

  void WorkerStarted(WorldIndex world);
  // `is_success`: exited 0 by itself. `is_genuine`: failed by itself.
  void WorkerEnded(WorldIndex world, const WorkerFailure& failure, bool is_success,
                   bool is_genuine);
  // The agent's answer to a worker of its own.
  void Answered(AgentIndex agent, const agent::AnswerCommit& answer);
  // What agents ask and tell their workers about a step to save after.
  void Asked(const World& world);
  void Told(AgentIndex agent, const agent::TellCheckpoint& told);
  void Agreed(const World& world);
  // Every worker that was told to go on has come to its end; no world begins new work after this.
  Instant end_of_work() const;

  // kCheckpoint, kShardWritten, kPublished, kStepsReported, kStepNamed, kStepKnown, kAgreedSave,
  // kWorldFinishes.
  void Handle(const Due& due);

 private:
  void MakeCheckpoint(WorldIndex index);
  void Save(WorldIndex index, int64_t step);
  void ReportSteps(WorldIndex index);
  void TellOfStep(WorldIndex index);
  void NameStep(WorldIndex index);
  void KnowStep(WorldIndex index, int rank);
  void SaveAgreed(WorldIndex index);
  void ReportShard(WorldIndex index, int rank);
  void Publish(WorldIndex index);
  void Finish(WorldIndex index);
  void InfectPeers(WorldIndex index);
  // All workers have come to the world's last step; maybe one fails there.
  void CompleteStep(WorldIndex index);
  // The member that holds `rank`, if its worker runs.
  const WorldMember* RunningHolder(const WorldRecord& record, int rank) const;

  SimParts& parts_;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_WORKLOAD_H_
