// What must hold when a round begins.
#include <algorithm>

#include "tests/simulation/invariants.h"

namespace muster::simulation {

void Invariants::RoundStarted(const rendezvous::RoundStarted& started,
                              const rendezvous::StepInput& input, const Starts& starts) {
  if (open_world_ >= 0) Break("two rounds are open");
  WorldIndex before = parts_.worlds.Find(started.world);
  if (before >= 0) {
    RoundRecovered(before);
    return;
  }
  ++rounds_started_;
  CheckNumber(started.world);
  if (started.world.id != input.fresh_world_id) Break("a round begins with a used world id");
  Starts places;
  for (const auto& [session, start] : starts) {
    if (start->world == started.world) places.emplace_back(session, start);
  }
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return a.second->group_rank < b.second->group_rank;
  });
  CheckPlaces(started, places);
  if (is_broken()) return;
  CheckOldWorkers(places);
  CheckWorldsBeside(started.world);
  CheckNobodyForgotten(places);
  CheckSetAside(places);
  CheckCharge(places[0].second->restarts_charged);
  NoteCharge(places[0].second->restarts_charged);
  CheckResume(places[0].second->resume);
  kept_commit_.reset();
  formed_ = started.world.round;

  WorldRecord record{.world = started.world,
                     .key = input.fresh_round_key,
                     .world_size = started.world_size,
                     .attempt = places[0].second->attempt,
                     .restarts_charged = places[0].second->restarts_charged,
                     .resume = places[0].second->resume,
                     .began = parts_.queue.now()};
  for (const auto& [session, start] : places) {
    AgentIndex agent = sessions_[session].agent;
    record.members.push_back({.agent = agent,
                              .place = *start,
                              .worker_count = parts_.agents[agent]->node().worker_count});
    if (parts_.worlds.IsTroubled(agent, parts_.queue.now())) {
      record.has_excuse = record.was_disturbed = true;
    }
    if (start->key != input.fresh_round_key) Break("a round begins with a used key");
  }
  known_.round = std::max(known_.round, record.world.round);
  known_.attempt = std::max(known_.attempt, record.attempt);
  known_.restarts_charged = std::max(known_.restarts_charged, record.restarts_charged);
  most_charged_ = std::max(most_charged_, record.restarts_charged);
  // Nodes that were set aside come back when they like; their joining is a reason.
  if (parts_.options.terms.max_node_failures > 0) record.has_excuse = true;
  open_world_ = last_world_ = parts_.worlds.Add(std::move(record));
}

// A restarted rendezvous takes up a world that its agents still run.
void Invariants::RoundRecovered(WorldIndex index) {
  WorldRecord& record = parts_.worlds[index];
  if (record.world.round < known_.round) record.has_excuse = true;
  // Those who came before it was known may be a reason to grow.
  bool has_place = static_cast<int>(record.members.size()) < parts_.options.terms.max_nodes;
  for (const auto& [id, session] : sessions_) {
    bool is_member = parts_.worlds.FindMember(record.world, session.agent) != nullptr;
    if (has_place && session.is_attached && !is_member) record.has_excuse = record.had_join = true;
  }
  record.is_over = false;
  open_world_ = last_world_ = index;
}

void Invariants::CheckNumber(const World& world) {
  if (world.round <= known_.round) Break("a round's number does not grow");
}

void Invariants::CheckPlaces(const rendezvous::RoundStarted& started, const Starts& places) {
  const JobTerms& terms = parts_.options.terms;
  auto nodes = static_cast<int>(places.size());
  if (nodes != started.node_count) return Break("a round's nodes are not all told of it");
  for (const auto& [session, start] : places) {
    if (leaving_.contains(sessions_[session].incarnation)) {
      Break("a node that is to leave is taken into a later round");
    }
  }
  if (nodes < terms.min_nodes) return Break("a round begins below MIN");
  if (nodes > terms.max_nodes) return Break("a round begins above MAX");
  int next_rank = 0;
  const StartRound& first = *places[0].second;
  for (int i = 0; i < nodes; ++i) {
    const auto& [id, start] = places[i];
    auto session = sessions_.find(id);
    if (session == sessions_.end()) return Break("a round begins with a node that is gone");
    const SimAgent& agent = *parts_.agents[session->second.agent];
    if (start->group_rank != GroupRank(i) || start->first_rank != Rank(next_rank)) {
      return Break("ranks are not exactly 0..world-1");
    }
    next_rank += agent.node().worker_count;
    bool is_alike = start->world_size == started.world_size && start->group_world_size == nodes &&
                    start->attempt == first.attempt && start->resume == first.resume &&
                    start->restarts_charged == first.restarts_charged &&
                    start->master_address == first.master_address &&
                    start->master_port == first.master_port;
    if (!is_alike) return Break("nodes of one round are told different things");
    if (terms.is_static && agent.node().node_rank != i) return Break("a node rank is not honoured");
    const SimAgent& before = *parts_.agents[sessions_[places[std::max(i - 1, 0)].first].agent];
    if (i > 0 && agent.node().node_rank <= before.node().node_rank && agent.node().node_rank) {
      return Break("nodes are not in the order of their node ranks");
    }
  }
  if (next_rank != started.world_size) return Break("ranks are not exactly 0..world-1");
  const SimAgent& master = *parts_.agents[sessions_[places[0].first].agent];
  if (first.master_address != master.address() || first.master_port == 0) {
    return Break("the master is not group rank 0's node");
  }
  if (first.attempt <= known_.attempt) Break("an attempt's number is used twice");
}

void Invariants::CheckOldWorkers(const Starts& places) {
  for (const auto& [session, start] : places) {
    if (parts_.worlds.live[sessions_[session].agent].count > 0) {
      Break("a round begins while a node of it runs workers of another");
    }
  }
}

// No worker of an older world runs beside a newer one anywhere, except within its node's lease (a
// node whose stream has ended is not waited for), or where it may: fenced, or as the user wants it.
void Invariants::CheckWorldsBeside(const World& world) {
  for (size_t i = 0; i < parts_.agents.size(); ++i) {
    const SimAgent& agent = *parts_.agents[i];
    if (parts_.worlds.live[i].count == 0 || agent.may_run_beside()) continue;
    if (parts_.worlds[parts_.worlds.live[i].world].world.round >= world.round) continue;
    if (parts_.queue.now() >= agent.lease_end()) {
      Break("a worker without the SDK outlives its node's lease beside a newer world");
    }
  }
}

// Whoever is attached and runs nothing gets a place while there is one.
void Invariants::CheckNobodyForgotten(const Starts& places) {
  if (static_cast<int>(places.size()) >= parts_.options.terms.max_nodes) return;
  if (parts_.options.terms.max_node_failures > 0) return;
  for (const auto& [id, session] : sessions_) {
    bool could = session.is_open && session.is_attached && !session.is_refused &&
                 parts_.worlds.live[session.agent].count == 0;
    if (!could) continue;
    bool is_in = std::any_of(places.begin(), places.end(),
                             [id = id](const auto& place) { return place.first == id; });
    if (!is_in) Break("a round begins without a node that waits, although there is a place");
  }
}

void Invariants::CheckCharge(int charged) {
  if (charged > parts_.options.terms.max_restarts) return Break("the restart budget is exceeded");
  if (charged < known_.restarts_charged) return Break("a charge is forgotten");
  const WorldRecord* before = last_world_ >= 0 ? &parts_.worlds[last_world_] : nullptr;
  if (charged > most_charged_) {
    if (charged > most_charged_ + 1) return Break("a failure is charged twice");
    if (before == nullptr || before->failures.empty()) {
      return Break("a restart is charged although no worker failed by itself");
    }
    for (const WorldMember& member : before->members) {
      bool may_be_lost = member.has_acknowledged || member.is_success_noted;
      if (!may_be_lost) return Break("a failure is charged although a node was lost");
    }
  }
  bool must_charge = before != nullptr && !before->failures.empty() && !before->was_disturbed &&
                     !before->had_join && !before->was_drained &&
                     parts_.options.terms.max_node_failures == 0;
  // A world that another rendezvous formed may have been charged for, too.
  const int known =
      before != nullptr ? std::max(before->restarts_charged, known_.restarts_charged) : 0;
  if (must_charge && charged != known + 1) {
    Break("a worker's failure is not charged");
  }
}

void Invariants::CheckResume(const std::optional<Commit>& resume) {
  if (!known_.commit) return;
  if (!resume || resume->step < known_.commit->step) {
    Break("a round does not resume from the newest commit");
  }
}

}  // namespace muster::simulation
