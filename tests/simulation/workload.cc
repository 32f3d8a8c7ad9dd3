#include "tests/simulation/workload.h"

#include <algorithm>
#include <string>

#include "tests/simulation/invariants.h"
#include "tests/simulation/sim_agent.h"

namespace muster::simulation {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kStepsBetweenCheckpoints = 10;
// A complete world works at least this long, so that it is seen to run.
constexpr Duration kLeastWork = milliseconds(400);
// From a started run.
constexpr Instant kOrigin{std::chrono::seconds(1000)};

}  // namespace

Instant Workload::end_of_work() const { return kOrigin + parts_.options.works_for; }

void Workload::WorkerStarted(WorldIndex world) {
  WorldRecord& record = parts_.worlds[world];
  ++record.started_workers;
  if (record.started_workers != record.world_size || record.is_broken) return;
  record.is_complete = true;
  record.last_step = record.resume ? record.resume->step : 0;
  Instant end = std::max(parts_.queue.now() + kLeastWork, end_of_work());
  parts_.queue.At(end, Act::kWorldFinishes, world);
  if (parts_.options.checkpoint_every > Duration(0)) {
    parts_.queue.After(parts_.options.checkpoint_every, Act::kCheckpoint, world);
  }
  if (parts_.options.saves_when_asked) {
    parts_.queue.After(parts_.random.Between(milliseconds(1), milliseconds(200)),
                       Act::kStepsReported, world);
  }
}

void Workload::WorkerEnded(WorldIndex world, const WorkerFailure& failure, bool is_success,
                           bool is_genuine) {
  WorldRecord& record = parts_.worlds[world];
  if (is_success) {
    ++record.succeeded_workers;
    return;
  }
  record.is_broken = true;
  if (is_genuine) {
    record.failures.push_back(failure);
    record.has_excuse = true;
  }
  if (parts_.options.has_followers) InfectPeers(world);
}

// The data plane tells the others within a round trip: they exit 1.
void Workload::InfectPeers(WorldIndex index) {
  for (const WorldMember& member : parts_.worlds[index].members) {
    SimAgent& agent = *parts_.agents[member.agent];
    if (agent.world() != index || parts_.random.Chance(30)) continue;
    for (int i = 0; i < member.worker_count; ++i) {
      agent.FailWorkerSoon(LocalRank(i), parts_.random.Between(milliseconds(1), milliseconds(60)));
    }
  }
}

const WorldMember* Workload::RunningHolder(const WorldRecord& record, int rank) const {
  for (const WorldMember& member : record.members) {
    int local_rank = rank - member.place.first_rank.value;
    if (local_rank < 0 || local_rank >= member.worker_count) continue;
    const SimAgent& agent = *parts_.agents[member.agent];
    WorldIndex runs = agent.world();
    bool is_there = runs >= 0 && parts_.worlds[runs].world == record.world;
    return is_there && agent.WorkerRuns(LocalRank(local_rank)) ? &member : nullptr;
  }
  return nullptr;
}

void Workload::Finish(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  if (record.is_broken) return;
  record.is_finishing = true;
  for (const WorldMember& member : record.members) {
    SimAgent& agent = *parts_.agents[member.agent];
    if (agent.world() != index) continue;
    for (int i = 0; i < member.worker_count; ++i) {
      agent.FinishWorker(LocalRank(i),
                         parts_.random.Between(Duration(0), parts_.options.finish_spread));
    }
  }
}

// ---- checkpoints ---------------------------------------------------------------------------

void Workload::MakeCheckpoint(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  if (record.is_broken || record.is_finishing) return;
  parts_.queue.After(parts_.options.checkpoint_every, Act::kCheckpoint, index);
  // Rank 0 waits, or all save after the step that it has named.
  if (record.pending || record.named_step) return;
  Save(index, record.last_step + kStepsBetweenCheckpoints);
}

void Workload::Save(WorldIndex index, int64_t step) {
  WorldRecord& record = parts_.worlds[index];
  record.last_step = step;
  CompleteStep(index);
  if (record.is_broken) return;
  record.pending = Commit{.step = record.last_step,
                          .directory = "/c/step-" + std::to_string(record.last_step) + ".r" +
                                       std::to_string(record.world.round.value) + "-" +
                                       record.world.id.ToHex().substr(0, 8)};
  record.is_granted = false;
  record.is_published = false;
  int shards = parts_.options.is_sharded ? record.world_size : 1;
  record.shard_arrived.assign(static_cast<size_t>(shards), false);
  for (int rank = 0; rank < shards; ++rank) {
    parts_.queue.After(parts_.random.Between(milliseconds(1), milliseconds(30)), Act::kShardWritten,
                       index, rank);
  }
}

void Workload::CompleteStep(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  TellOfStep(index);
  const int64_t fails_at = parts_.options.fails_at_step;
  if (fails_at == 0 || record.last_step < fails_at) return;
  SimAgent& agent = *parts_.agents[record.members.back().agent];
  if (agent.world() != index || agent.is_frozen()) return;
  agent.EndWorker(0, WorkerExit{.code = 5}, /*is_genuine=*/true);
}

void Workload::ReportShard(WorldIndex index, int rank) {
  WorldRecord& record = parts_.worlds[index];
  const WorldMember* member = RunningHolder(record, rank);
  if (member == nullptr || !record.pending) return;
  parts_.agents[member->agent]->ReportShard(
      {.world = record.world,
       .rank = Rank(rank),
       .shard_count = static_cast<int>(record.shard_arrived.size()),
       .commit = *record.pending});
}

void Workload::Answered(AgentIndex agent, const agent::AnswerCommit& answer) {
  WorldIndex index = parts_.worlds.Find(answer.world);
  if (index < 0 || answer.rank != Rank(0)) return;
  WorldRecord& record = parts_.worlds[index];
  if (record.members[0].agent != agent || record.pending != answer.commit) return;
  if (!answer.is_granted || record.is_published) {
    const bool is_agreed = record.named_step && answer.commit.step == *record.named_step;
    // A node that finishes meanwhile needs no stop.
    const bool is_for_drain =
        record.was_drained && record.was_agreed && !record.was_disturbed && !record.is_finishing;
    if (is_agreed && answer.is_granted && is_for_drain) {
      parts_.invariants.Break("a step begins after the checkpoint that a node leaves with");
    }
    if (is_agreed) record.named_step.reset();
    record.pending.reset();
    return;
  }
  if (record.is_granted) return;
  record.is_granted = true;
  parts_.queue.After(parts_.random.Between(milliseconds(1), milliseconds(30)), Act::kPublished,
                     index);
}

void Workload::Publish(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  const WorldMember* member = RunningHolder(record, 0);
  if (member == nullptr || !record.pending) return;
  record.is_published = true;
  parts_.agents[member->agent]->ReportPublished({.world = record.world, .commit = *record.pending});
}

// ---- a checkpoint that all ranks agree on ---------------------------------------------------

void Workload::ReportSteps(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  if (!record.is_broken) TellOfStep(index);
}

void Workload::TellOfStep(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  record.reported_step = record.last_step;
  for (const WorldMember& member : record.members) {
    SimAgent& agent = *parts_.agents[member.agent];
    if (agent.world() != index) continue;
    for (int i = 0; i < member.worker_count; ++i) {
      if (agent.WorkerRuns(LocalRank(i))) {
        agent.ReportStep(record.world, LocalRank(i), record.last_step);
      }
    }
  }
}

void Workload::Asked(const World& world) {
  WorldIndex index = parts_.worlds.Find(world);
  if (index < 0) return;
  parts_.queue.After(parts_.random.Between(milliseconds(1), milliseconds(60)), Act::kStepNamed,
                     index);
}

void Workload::NameStep(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  const WorldMember* member = RunningHolder(record, 0);
  if (member == nullptr || record.is_broken || record.is_finishing || record.named_step) return;
  record.named_step = record.last_step + 1;
  record.knows_step.assign(static_cast<size_t>(record.world_size), false);
  record.knows_step[0] = true;
  parts_.agents[member->agent]->AnnounceCheckpoint(record.world, *record.named_step);
}

void Workload::Told(AgentIndex agent, const agent::TellCheckpoint& told) {
  WorldIndex index = parts_.worlds.Find(told.world);
  WorldMember* member = parts_.worlds.FindMember(told.world, agent);
  if (member == nullptr) return;
  if (parts_.worlds[index].named_step != told.step) {
    parts_.invariants.Break("a rank is told to save after a step that rank 0 has not named");
    return;
  }
  for (int i = 0; i < member->worker_count; ++i) {
    parts_.queue.After(parts_.random.Between(milliseconds(1), milliseconds(20)), Act::kStepKnown,
                       index, member->place.first_rank.value + i);
  }
}

void Workload::KnowStep(WorldIndex index, int rank) {
  WorldRecord& record = parts_.worlds[index];
  const WorldMember* member = RunningHolder(record, rank);
  if (member == nullptr || !record.named_step) return;
  record.knows_step[static_cast<size_t>(rank)] = true;
  parts_.agents[member->agent]->KnowCheckpoint(
      record.world, LocalRank(rank - member->place.first_rank.value), *record.named_step);
}

void Workload::Agreed(const World& world) {
  WorldIndex index = parts_.worlds.Find(world);
  if (index < 0) return;
  WorldRecord& record = parts_.worlds[index];
  for (int rank = 0; rank < record.world_size && !record.is_broken; ++rank) {
    if (RunningHolder(record, rank) != nullptr && !record.knows_step[static_cast<size_t>(rank)]) {
      parts_.invariants.Break("rank 0 goes on before every rank knows the step to save after");
    }
  }
  parts_.queue.After(parts_.random.Between(milliseconds(1), milliseconds(30)), Act::kAgreedSave,
                     index);
}

void Workload::SaveAgreed(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  if (record.is_broken || record.is_finishing || !record.named_step) return;
  if (record.pending) {
    // One that was begun before comes first.
    parts_.queue.After(milliseconds(20), Act::kAgreedSave, index);
    return;
  }
  Save(index, *record.named_step);
}

void Workload::Handle(const Due& due) {
  switch (due.act) {
    case Act::kCheckpoint:
      MakeCheckpoint(due.who);
      return;
    case Act::kShardWritten:
      ReportShard(due.who, due.what);
      return;
    case Act::kPublished:
      Publish(due.who);
      return;
    case Act::kStepsReported:
      ReportSteps(due.who);
      return;
    case Act::kStepNamed:
      NameStep(due.who);
      return;
    case Act::kStepKnown:
      KnowStep(due.who, due.what);
      return;
    case Act::kAgreedSave:
      SaveAgreed(due.who);
      return;
    default:
      Finish(due.who);
  }
}

}  // namespace muster::simulation
