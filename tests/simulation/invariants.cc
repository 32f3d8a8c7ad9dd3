// What the rendezvous hears and says, what agents do. The rules of a round that begins are in
// round_invariants.cc.
#include "tests/simulation/invariants.h"

#include <algorithm>
#include <utility>

namespace muster::simulation {
namespace {

// "…-<first 8 digits of the world id>".
bool IsOf(const Commit& commit, const World& world) {
  return commit.directory.ends_with(world.id.ToHex().substr(0, 8));
}

}  // namespace

void Invariants::Break(const std::string& rule) {
  if (is_broken()) return;
  broken_ = rule;
  if (parts_.trace.is_on()) parts_.trace.Add(parts_.queue.now(), "BROKEN: " + rule);
}

// ---- what the rendezvous hears -------------------------------------------------------------

void Invariants::RendezvousStarted(const rendezvous::JobRecord& kept) {
  sessions_.clear();
  open_world_ = -1;
  last_world_ = -1;
  Knowledge before = std::exchange(known_, Knowledge{.round = kept.world.round});
  kept_commit_.reset();
  if (parts_.options.keeps_state) {
    // What was ever told to anybody is known for good, to whoever was in the job.
    kept_commit_ = std::move(before.commit);
    kept_commit_told_in_ = commit_told_in_;
    if (!verdict_) verdict_ = kept.verdict;
  } else {
    verdict_.reset();
  }
  commit_told_in_ = RoundId();
  commit_is_ours_ = false;
  formed_ = RoundId();
  was_opened_ = has_stranger_opened_ = is_job_known_ = false;
  first_world_ = parts_.worlds.size();
  charged_worlds_.clear();
  set_aside_.clear();
  leaving_.clear();
  for (WorldIndex i = 0; i < parts_.worlds.size(); ++i) parts_.worlds[i].was_agreed = false;
}

void Invariants::SessionOpened(SessionId session, AgentIndex agent) {
  sessions_[session] = {.agent = agent, .is_open = true};
}

void Invariants::RendezvousHears(const rendezvous::JobEvent& event) {
  if (const auto* ended = std::get_if<rendezvous::SessionEnded>(&event)) {
    sessions_.erase(ended->session);
    return;
  }
  const auto* came = std::get_if<rendezvous::SessionMessage>(&event);
  if (came == nullptr) return;
  auto known = sessions_.find(came->session);
  if (known == sessions_.end()) return;
  if (parts_.trace.is_on()) {
    const SimAgent& agent = *parts_.agents[known->second.agent];
    parts_.trace.Add(parts_.queue.now(), "rendezvous <- " + agent.node().name + "#" +
                                             std::to_string(known->second.agent) + " " +
                                             Describe(came->message));
  }
  std::visit([&](const auto& message) { Heard(known->second, message); }, came->message);
}

void Invariants::Heard(Session& session, const LeaveRequest& /*request*/) {
  leaving_.insert(session.incarnation);
  if (open_world_ >= 0) parts_.worlds[open_world_].has_excuse = true;
}

uint64_t Invariants::NumberOf(const Session& session) const {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& entry) { return &entry.second == &session; });
  return found->first.value;
}

void Invariants::Heard(Session& session, const Attach& attach) {
  session.incarnation = attach.incarnation;
  if (attach.is_drained) {
    leaving_.insert(attach.incarnation);
    session.is_drained = true;
    if (open_world_ >= 0) parts_.worlds[open_world_].has_excuse = true;
  }
  const bool was_in_job = attach.was_attached || attach.running || attach.highest_round.value > 0;
  const bool disagrees = parts_.agents[session.agent]->node().disagrees;
  // A rendezvous that came back empty can't know better while nobody has told it.
  if (!std::exchange(was_opened_, true)) has_stranger_opened_ = disagrees;
  if (!disagrees && was_in_job) is_job_known_ = true;
  // It has left its earlier streams behind, though what it said on them may come late.
  const uint64_t number = NumberOf(session);
  for (auto& [id, other] : sessions_) {
    if (id.value < number && other.agent == session.agent) other.is_open = false;
  }
  const Knowledge& told = parts_.agents[session.agent]->KnowledgeAt(attach.candidate_port);
  known_.round = std::max(known_.round, told.round);
  known_.attempt = std::max(known_.attempt, told.attempt);
  known_.restarts_charged = std::max(known_.restarts_charged, told.restarts_charged);
  if (kept_commit_ && was_in_job) {
    known_.commit = std::exchange(kept_commit_, std::nullopt);
    commit_told_in_ = kept_commit_told_in_;
  }
  bool is_newer = told.commit && (!known_.commit || told.round > commit_told_in_ ||
                                  (told.round == commit_told_in_ && !commit_is_ours_ &&
                                   told.commit->step > known_.commit->step));
  if (known_.commit && commit_is_ours_ && formed_.value > 0) {
    // Of a world beside the one that runs here.
    is_newer = told.commit && told.round > formed_ && told.commit->step > known_.commit->step;
  }
  if (is_newer) {
    commit_is_ours_ = false;
    known_.commit = told.commit;
    commit_told_in_ = told.round;
  }
  for (WorldIndex i = 0; i < parts_.worlds.size(); ++i) {
    WorldMember* member = parts_.worlds.FindMember(parts_.worlds[i].world, session.agent);
    if (member != nullptr && !attach.running) member->has_acknowledged = true;
    bool is_open = i == open_world_;
    if (!is_open || (member != nullptr && attach.running)) continue;
    // It may be a reason to grow, or a member that has lost its workers.
    auto places = static_cast<int>(parts_.worlds[i].members.size());
    if (places < parts_.options.terms.max_nodes) parts_.worlds[i].has_excuse = true;
    if (places < parts_.options.terms.max_nodes) parts_.worlds[i].had_join = true;
  }
}

void Invariants::Heard(Session& session, const StopDone& done) {
  WorldMember* member = parts_.worlds.FindMember(done.world, session.agent);
  if (member != nullptr) member->has_acknowledged = true;
}

void Invariants::Heard(Session& /*session*/, const ShardReport& report) {
  WorldIndex index = parts_.worlds.Find(report.world);
  if (index < 0) return;
  WorldRecord& record = parts_.worlds[index];
  auto rank = static_cast<size_t>(report.rank.value);
  if (record.pending == report.commit && rank < record.shard_arrived.size()) {
    record.shard_arrived[rank] = true;
  }
}

void Invariants::Heard(Session& session, const Leave& /*leave*/) { session.is_refused = true; }

// ---- what it says --------------------------------------------------------------------------

void Invariants::RendezvousSays(const rendezvous::StepInput& input,
                                const std::vector<rendezvous::JobEffect>& effects) {
  Starts starts;
  for (const rendezvous::JobEffect& effect : effects) {
    const auto* send = std::get_if<rendezvous::SendMessage>(&effect);
    const auto* start = send ? std::get_if<StartRound>(&send->message) : nullptr;
    if (start != nullptr) starts.emplace_back(send->session, start);
  }
  for (const rendezvous::JobEffect& effect : effects) {
    if (const auto* started = std::get_if<rendezvous::RoundStarted>(&effect)) {
      RoundStarted(*started, input, starts);
    } else if (const auto* over = std::get_if<rendezvous::RoundOver>(&effect)) {
      RoundOver(*over);
    } else if (const auto* send = std::get_if<rendezvous::SendMessage>(&effect)) {
      Said(send->session, send->message);
    } else if (const auto* end = std::get_if<rendezvous::EndSession>(&effect)) {
      auto known = sessions_.find(end->session);
      if (known == sessions_.end()) continue;
      CheckSilentLoss(known->second);
      known->second.is_open = false;
    }
  }
}

void Invariants::Said(SessionId id, const RendezvousMessage& message) {
  auto known = sessions_.find(id);
  if (known == sessions_.end() || !known->second.is_open) return;
  Session& session = known->second;
  if (parts_.trace.is_on()) {
    const SimAgent& agent = *parts_.agents[session.agent];
    parts_.trace.Add(parts_.queue.now(), "rendezvous -> " + agent.node().name + "#" +
                                             std::to_string(session.agent) + " " +
                                             Describe(message));
  }
  if (std::holds_alternative<Attached>(message)) {
    session.is_attached = true;
  } else if (std::holds_alternative<Refused>(message)) {
    session.is_refused = true;
  } else if (const auto* start = std::get_if<StartRound>(&message)) {
    SaidStart(session, *start);
  } else if (const auto* stop = std::get_if<StopRound>(&message)) {
    SaidStop(*stop);
  } else if (const auto* noted_success = std::get_if<SuccessNoted>(&message)) {
    WorldMember* member = parts_.worlds.FindMember(noted_success->world, session.agent);
    if (member != nullptr) member->is_success_noted = true;
  } else if (const auto* granted = std::get_if<CommitGranted>(&message)) {
    SaidGrant(session, *granted);
  } else if (const auto* noted = std::get_if<CommitNoted>(&message)) {
    SaidNoted(*noted);
  } else if (const auto* agreed = std::get_if<CheckpointAgreed>(&message)) {
    const WorldIndex index = parts_.worlds.Find(agreed->world);
    if (index >= 0) parts_.worlds[index].was_agreed = true;
  } else if (const auto* ended = std::get_if<JobEnded>(&message)) {
    if (!leaving_.contains(session.incarnation)) SaidEnd(*ended);
  }
}

void Invariants::SaidStart(Session& session, const StartRound& start) {
  const SimAgent& agent = *parts_.agents[session.agent];
  if (agent.node().disagrees && !(has_stranger_opened_ && !is_job_known_)) {
    Break("a node with other terms was let into a round");
  }
  if (!session.is_attached) Break("a round starts on a node that isn't attached");
  if (session.is_drained) Break("a node that was sent away gets a place");
  if (open_world_ < 0 || parts_.worlds[open_world_].world != start.world) {
    Break("StartRound of a round that isn't open");
    return;
  }
  const WorldMember* member = parts_.worlds.FindMember(start.world, session.agent);
  if (member == nullptr || !(member->place == start)) Break("two StartRounds of one place differ");
}

void Invariants::SaidGrant(Session& session, const CommitGranted& granted) {
  if (open_world_ < 0 || parts_.worlds[open_world_].world != granted.world) {
    Break("a commit is granted to a round that isn't open");
    return;
  }
  WorldRecord& record = parts_.worlds[open_world_];
  if (record.members[0].agent != session.agent) Break("a commit is granted to another than rank 0");
  if (record.pending == granted.commit) {
    bool all = std::all_of(record.shard_arrived.begin(), record.shard_arrived.end(),
                           [](bool arrived) { return arrived; });
    if (!all) Break("a commit is granted before all shards are reported");
  } else if (!IsOf(granted.commit, record.world)) {
    Break("a round is granted another round's commit");
  }
  record.granted.push_back(granted.commit);
}

void Invariants::SaidNoted(const CommitNoted& noted) {
  WorldIndex index = parts_.worlds.Find(noted.world);
  if (index < 0 || index != open_world_) {
    Break("a commit of a round that isn't open counts");
    return;
  }
  WorldRecord& record = parts_.worlds[index];
  if (IsOf(noted.commit, record.world)) {
    bool was_granted = std::find(record.granted.begin(), record.granted.end(), noted.commit) !=
                       record.granted.end();
    if (!was_granted) Break("a commit counts that was never granted");
    if (!record.committed || record.committed->step < noted.commit.step) {
      record.committed = noted.commit;
    }
  }
  if (known_.commit && record.world.round <= commit_told_in_ &&
      noted.commit.step < known_.commit->step) {
    Break("committed steps go backwards");
  }
  known_.commit = noted.commit;
  commit_is_ours_ = commit_is_ours_ || IsOf(noted.commit, record.world);
  commit_told_in_ = std::max(commit_told_in_, record.world.round);
}

void Invariants::SaidEnd(const JobEnded& ended) {
  const Verdict& verdict = ended.verdict;
  if (verdict_) {
    if (!(*verdict_ == verdict)) Break("two nodes are told different verdicts");
    return;
  }
  verdict_ = verdict;
  if (verdict.restarts_charged > parts_.options.terms.max_restarts) {
    Break("the budget is exceeded in the verdict");
  }
  const WorldRecord* last = last_world_ >= 0 ? &parts_.worlds[last_world_] : nullptr;
  if (verdict.succeeded) {
    if (last == nullptr || last->succeeded_workers != last->world_size) {
      Break("the job succeeds although a worker has not exited 0");
    }
    return;
  }
  if (verdict.failures.empty()) return;
  const WorkerFailure& root = verdict.failures.front();
  if (last == nullptr || last->failures.empty()) {
    Break("the job fails by a worker although none failed by itself");
  } else if (verdict.exit_code != root.exit.ShellCode()) {
    Break("the exit code isn't the root cause's own");
  } else if (!root.IsHopeless()) {
    CheckWhyEnded(verdict);
  }
  bool is_clear = last != nullptr && !last->was_disturbed &&
                  parts_.options.most_delay < std::chrono::milliseconds(1);
  if (is_clear && !last->failures.empty() && last->failures.front().pid != root.pid &&
      last->failures.size() == 1) {
    Break("the verdict names a follower as the cause");
  }
}

// A node that is given up on for its silence (not for the end of its stream) has had its lease end
// before the rendezvous', so nothing of it runs any more, except what may.
void Invariants::CheckSilentLoss(const Session& session) {
  if (!session.is_open || !session.is_attached || session.is_refused || verdict_) return;
  if (parts_.agents[session.agent]->may_run_beside()) return;
  if (parts_.worlds.live[session.agent].count > 0) {
    Break("a silent node is given up on while its workers run");
  }
}

void Invariants::RoundOver(const rendezvous::RoundOver& over) {
  if (open_world_ < 0 || parts_.worlds[open_world_].world != over.world) {
    Break("a round ends that isn't open");
    return;
  }
  WorldRecord& record = parts_.worlds[open_world_];
  record.is_over = true;
  bool has_succeeded = record.succeeded_workers == record.world_size;
  if (!record.has_excuse && !has_succeeded) Break("a round ends without a cause: " + over.reason);
  open_world_ = -1;
}

// ---- the agents ----------------------------------------------------------------------------

void Invariants::CheckSpawn(AgentIndex agent, const StartRound& place) {
  HostIndex host = parts_.agents[agent]->host();
  for (const LiveWorkers& live : parts_.worlds.live) {
    if (live.host == host && live.count > 0) {
      Break("a worker of an old round outlives the start of a newer one on its node");
    }
  }
  const WorldMember* member = parts_.worlds.FindMember(place.world, agent);
  if (member == nullptr) {
    Break("workers start in a round that the node isn't in");
  } else if (member->has_spawned) {
    Break("workers of one round start twice");
  }
}

void Invariants::CheckDeadline(Instant deadline, Instant last_acknowledged,
                               const std::optional<Instant>& nobody_there_at) {
  // A rendezvous that started after a refused probe forms no round before its quiet time is over.
  bool is_told = parts_.options.lost_contact != agent::LostContact::kStop;
  if (is_told && nobody_there_at && deadline < *nobody_there_at + parts_.options.startup_quiet)
    return;
  Duration lease = parts_.options.lease;
  Duration margin = std::min<Duration>(std::chrono::milliseconds(500), lease / 4);
  if (deadline > last_acknowledged + lease - margin / 2) {
    Break("an agent lets its workers live past its lease");
  }
}

void Invariants::AgentEnded(AgentIndex index, const Verdict& verdict) {
  const SimAgent& agent = *parts_.agents[index];
  if (agent.guardian_is_alive() && parts_.worlds.live[index].count > 0) {
    Break("an agent ends before its workers");
  }
  bool stopped_by_user = verdict.exit_code == 130 || verdict.exit_code == 143;
  // Who leaves and is stopped meanwhile may tell it in either way.
  bool is_farewell =
      agent.told_verdict() && agent.told_verdict()->exit_code == 75 && verdict.exit_code == 75;
  bool is_as_told = !agent.told_verdict() || *agent.told_verdict() == verdict || is_farewell;
  if (!is_as_told && !stopped_by_user && agent.guardian_is_alive() && !agent.node().disagrees) {
    Break("an agent ends with another verdict than it was told");
  }
  if (agent.node().disagrees && verdict.succeeded && !agent.told_verdict()) {
    Break("a node with other terms ends well");
  }
}

void Invariants::CheckWakeup(const char* who, Instant now, Instant next) {
  if (next <= now) Break(std::string(who) + " is due again at once, without end");
}

void Invariants::CheckStillDue(const char* who, Instant now, Instant was, Instant next) {
  if (was <= now && next > now) Break(std::string(who) + " puts off a timer that is due");
}

bool Invariants::IsMember(const Incarnation& incarnation) const {
  return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    const Session& session = entry.second;
    return session.is_open && session.is_attached && !session.is_refused &&
           session.incarnation == incarnation;
  });
}

bool Invariants::AnyoneIsAttached() const {
  return std::any_of(sessions_.begin(), sessions_.end(), [](const auto& entry) {
    const Session& session = entry.second;
    return session.is_open && session.is_attached && !session.is_refused;
  });
}

bool Invariants::RunsWell() const {
  if (open_world_ < 0) return false;
  const WorldRecord& record = parts_.worlds[open_world_];
  return record.is_complete && !record.is_broken;
}

}  // namespace muster::simulation
