// What must hold of the rules on restarts, on nodes that are lost again and again, and on growth.
#include <algorithm>

#include "tests/simulation/invariants.h"

namespace muster::simulation {

// ---- growth --------------------------------------------------------------------------------

void Invariants::HeardSuccess(const Session& session, const World& world) {
  const bool counts = session.is_open && session.is_attached && !session.is_refused;
  if (!counts || open_world_ < 0 || parts_.worlds[open_world_].world != world) return;
  if (parts_.worlds.FindMember(world, session.agent) == nullptr) return;
  parts_.worlds[open_world_].is_success_known = true;
}

void Invariants::SaidStop(const StopRound& stop) {
  const WorldIndex index = parts_.worlds.Find(stop.world);
  if (index < 0) return;
  WorldRecord& record = parts_.worlds[index];
  // Whoever comes back is told once more.
  if (!record.stop_began.IsNever()) return;
  record.stop_began = parts_.queue.now();
  if (record.is_success_known && stop.reason.starts_with("the world grows")) {
    Break("a round whose first workers have finished is stopped for a newcomer");
  }
}

// ---- nodes that are set aside --------------------------------------------------------------

void Invariants::NoteSetAside(const std::vector<rendezvous::NodeStatus>& nodes) {
  std::set<Incarnation> before = std::move(set_aside_);
  set_aside_.clear();
  for (const rendezvous::NodeStatus& node : nodes) {
    if (!node.is_set_aside) continue;
    set_aside_.insert(node.incarnation);
    if (before.contains(node.incarnation)) continue;
    int rounds = 0;
    for (WorldIndex i = 0; i < parts_.worlds.size(); ++i) {
      for (const WorldMember& member : parts_.worlds[i].members) {
        if (parts_.agents[member.agent]->node().name == node.node_name) ++rounds;
      }
    }
    if (rounds < parts_.options.terms.max_node_failures) {
      Break("a node is set aside that was in too few rounds to be lost so often");
    }
  }
}

void Invariants::CheckSetAside(const Starts& places) {
  const auto is_set_aside = [this](const auto& place) {
    return set_aside_.contains(parts_.agents[sessions_[place.first].agent]->incarnation());
  };
  const auto aside = static_cast<int>(std::count_if(places.begin(), places.end(), is_set_aside));
  const int others = static_cast<int>(places.size()) - aside;
  if (aside > std::max(0, parts_.options.terms.min_nodes - others)) {
    Break("a node that is set aside gets a place though there are enough others");
  }
}

// ---- restarts ------------------------------------------------------------------------------

// Called when a round begins, before that is known.
void Invariants::NoteCharge(int charged) {
  if (charged <= known_.restarts_charged || last_world_ < 0) return;
  charged_worlds_.push_back(last_world_);
  // No run lasts an hour.
  const int limit = parts_.options.terms.max_restarts_per_hour;
  if (limit > 0 && charged_worlds_.size() > static_cast<size_t>(limit)) {
    Break("there are more restarts within an hour than are allowed");
  }
}

void Invariants::CheckWhyEnded(const Verdict& verdict) {
  const JobTerms& terms = parts_.options.terms;
  const auto names = [&](const char* flag) {
    return verdict.reason.find(flag) != std::string::npos;
  };
  if (names("(--max-stuck-restarts=")) {
    CheckStuck();
  } else if (names("(--max-early-failures=")) {
    CheckNeverLived();
  } else if (names("--max-restarts-per-hour=")) {
    if (charged_worlds_.size() < static_cast<size_t>(terms.max_restarts_per_hour)) {
      Break("the job ends for its restarts within an hour though more are allowed");
    }
  } else if (verdict.restarts_charged != terms.max_restarts) {
    Break("the job fails by a worker before the budget is spent");
  }
}

void Invariants::CheckStuck() {
  const auto restarts = static_cast<size_t>(parts_.options.terms.max_stuck_restarts);
  if (restarts == 0 || charged_worlds_.size() < restarts) {
    return Break("a job counts as stuck before it was restarted so often");
  }
  const WorldRecord& last = parts_.worlds[last_world_];
  bool is_stuck = last.reported_step >= 0;
  for (size_t i = charged_worlds_.size() - restarts; i < charged_worlds_.size(); ++i) {
    if (parts_.worlds[charged_worlds_[i]].reported_step != last.reported_step) is_stuck = false;
  }
  if (!is_stuck) Break("a job that makes progress counts as stuck");
}

void Invariants::CheckNeverLived() {
  const JobTerms& terms = parts_.options.terms;
  if (charged_worlds_.size() + 1 < static_cast<size_t>(terms.max_early_failures)) {
    return Break("a program counts as one that never lived before it was tried so often");
  }
  for (WorldIndex i = first_world_; i < parts_.worlds.size(); ++i) {
    const WorldRecord& record = parts_.worlds[i];
    if (record.stop_began.IsNever()) continue;
    if (record.stop_began - record.began >= terms.min_uptime) {
      return Break("a program counts as one that never lived though it did");
    }
  }
}

}  // namespace muster::simulation
