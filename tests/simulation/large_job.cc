#include "tests/simulation/large_job.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/version.h"

namespace muster::simulation {
namespace {

using rendezvous::JobState;

constexpr char kRunId[] = "large";
// Nobody falls silent where failures close their streams.
constexpr Duration kNoLease = std::chrono::hours(24 * 3650);

rendezvous::JobOptions MachineOptions(const LargeJobOptions& options) {
  rendezvous::JobOptions job;
  job.lease = options.lease.value_or(kNoLease);
  job.startup_quiet = Duration(0);
  return job;
}

}  // namespace

LargeJob::LargeJob(LargeJobOptions options)
    : options_(options),
      chance_(options.seed),
      random_(~options.seed),
      machine_(kRunId, MachineOptions(options), Instant(std::chrono::seconds(1000))),
      start_(std::chrono::seconds(1000)),
      now_(start_),
      nodes_(static_cast<size_t>(options.nodes + options.spares)) {}

LargeJobResult LargeJob::Run() {
  Begin();
  const Instant end = start_ + options_.horizon;
  while (!queue_.empty() && result_.broken.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const Due due = queue_.back();
    queue_.pop_back();
    if (due.at >= end) break;
    now_ = std::max(now_, due.at);
    Handle(due);
    KeepTicking();
  }
  now_ = end;
  if (is_running_) EndStretch(end);
  result_.timeline.horizon = options_.horizon;
  if (outage_count_ > 0) result_.outage = outages_ / outage_count_;
  return std::move(result_);
}

// As many nodes are being repaired as there are in the long run.
void LargeJob::Begin() {
  const double away = static_cast<double>(options_.repair.count()) /
                      static_cast<double>((options_.node_mtbf + options_.repair).count());
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    constexpr int kParts = 1 << 30;
    if (random_.Below(kParts) < static_cast<int>(away * kParts)) {
      At(start_ + random_.Between(Duration(0), options_.repair), Due::What::kReturns, i);
    } else {
      Return(i);
    }
  }
  FailureComes();
}

void LargeJob::At(Instant at, Due::What what, int node, uint64_t round) {
  queue_.push_back({at, ++order_, what, node, round});
  std::push_heap(queue_.begin(), queue_.end());
}

void LargeJob::Handle(const Due& due) {
  switch (due.what) {
    case Due::What::kFailureComes: {
      // Each node fails as often as another; one that is away can't.
      const int node = chance_.Below(static_cast<int>(nodes_.size()));
      FailureComes();
      if (nodes_[node].state != NodeState::kUp) return;
      // It renewed its lease for the last time up to a third of the lease ago, which is now.
      if (options_.lease) {
        if (unnoticed_ == 0) Beat();
        Say(nodes_[node], Heartbeat{1});
      }
      const Duration later =
          options_.lease ? random_.Between(Duration(0), *options_.lease / 3) : Duration(0);
      ++unnoticed_;
      At(now_ + later, Due::What::kFails, node);
      return;
    }
    case Due::What::kFails:
      return Fail(due.node);
    case Due::What::kReturns:
      return Return(due.node);
    case Due::What::kTick:
      tick_at_ = Instant::Never();
      return Step(rendezvous::TimePassed{});
    case Due::What::kBeat:
      beats_ = false;
      if (IsWatched()) Beat();
      return;
    case Due::What::kAnswers:
      return Answer();
    case Due::What::kInformed:
      return Informed(due.round);
  }
}

void LargeJob::FailureComes() {
  const auto count = static_cast<int64_t>(nodes_.size());
  At(now_ + Exponential(options_.node_mtbf / count), Due::What::kFailureComes);
}

void LargeJob::Fail(int index) {
  Node& node = nodes_[index];
  if (node.state != NodeState::kUp) {
    --unnoticed_;
    return;
  }
  ++result_.failures;
  node.state = NodeState::kFailed;
  node.failed_at = now_;
  if (is_running_ && node.started == round_) hurt_at_ = std::min(hurt_at_, now_);
  if (options_.lease) return;
  const SessionId session = node.session;
  Forget(node);
  Step(rendezvous::SessionEnded{session});
  // It doesn't come back within the grace.
  At(now_ + rendezvous::JobOptions().reattach_grace, Due::What::kTick);
}

// Noticed: it is repaired, and comes back as a newcomer.
void LargeJob::Forget(Node& node) {
  --unnoticed_;
  node.state = NodeState::kAway;
  node.owes_answer = false;
  by_session_.erase(node.session);
  At(std::max(now_, node.failed_at + options_.repair), Due::What::kReturns,
     static_cast<int>(&node - nodes_.data()));
}

void LargeJob::Return(int index) {
  Node& node = nodes_[index];
  node.state = NodeState::kUp;
  node.session = SessionId(++last_session_);
  node.incarnation = random_.FreshId<Incarnation>();
  by_session_[node.session] = index;
  Attach attach;
  attach.incarnation = node.incarnation;
  attach.node_name = "n" + std::to_string(index);
  attach.address = "10.0.0.1";
  attach.candidate_port = 1;
  attach.terms.run_id = kRunId;
  attach.terms.min_nodes = options_.min_nodes;
  attach.terms.max_nodes = options_.nodes;
  attach.terms.last_call_timeout = std::chrono::seconds(1);
  attach.terms.version = kVersion;
  Say(node, std::move(attach));
}

void LargeJob::Answer() {
  const StopDone done{.world = stopping_, .candidate_port = 1};
  owing_ = 0;
  for (Node& node : nodes_) {
    if (!std::exchange(node.owes_answer, false) || node.state != NodeState::kUp) continue;
    Say(node, done);
  }
}

void LargeJob::Informed(uint64_t round) {
  if (round != round_ || !is_running_) return;
  is_informed_ = true;
  informed_at_ = now_;
  if (!outage_began_.IsNever()) {
    outages_ += now_ - outage_began_;
    ++outage_count_;
    outage_began_ = Instant::Never();
  }
}

void LargeJob::Beat() {
  for (const Node& node : nodes_) {
    if (node.state == NodeState::kUp) Say(node, Heartbeat{1});
  }
}

bool LargeJob::IsWatched() const {
  const JobState state = machine_.state();
  return unnoticed_ > 0 || state == JobState::kGathering || state == JobState::kClosing;
}

void LargeJob::KeepTicking() {
  // Where nobody is silent, time jumps, and the machine takes that for a pause of its own.
  if (!IsWatched()) return;
  if (options_.lease && !beats_) {
    beats_ = true;
    At(now_ + *options_.lease / 2, Due::What::kBeat);
  }
  const Instant next = machine_.NextWakeup();
  if (next.IsNever() || next >= tick_at_) return;
  tick_at_ = next;
  At(next, Due::What::kTick);
}

void LargeJob::Say(const Node& node, AgentMessage message) {
  Step(rendezvous::SessionMessage{node.session, std::move(message)});
}

void LargeJob::Step(const rendezvous::JobEvent& event) {
  ++result_.messages;
  const rendezvous::StepInput input{.now = now_,
                                    .fresh_world_id = random_.FreshId<WorldId>(),
                                    .fresh_round_key = random_.FreshId<RoundKey>()};
  const uint64_t round_before = round_;
  const int owing_before = owing_;
  for (const rendezvous::JobEffect& effect : machine_.Step(input, event)) Perform(effect);
  const auto wave = [&](int count) { return options_.message_takes * count; };
  // The last one hears of it when all have been told, and its answer comes after all others.
  if (owing_ > owing_before) At(now_ + 2 * wave(owing_ - owing_before), Due::What::kAnswers);
  if (round_ != round_before) {
    CheckRound();
    At(now_ + wave(told_), Due::What::kInformed, 0, round_);
  }
}

void LargeJob::Perform(const rendezvous::JobEffect& effect) {
  if (const auto* send = std::get_if<rendezvous::SendMessage>(&effect)) {
    ++result_.messages;
    auto found = by_session_.find(send->session);
    if (found == by_session_.end()) return;
    Node& node = nodes_[found->second];
    if (const auto* start = std::get_if<StartRound>(&send->message)) return Told(node, *start);
    if (const auto* stop = std::get_if<StopRound>(&send->message)) return Told(node, *stop);
    if (std::holds_alternative<JobEnded>(send->message)) Break("the job ended");
  } else if (const auto* end = std::get_if<rendezvous::EndSession>(&effect)) {
    auto found = by_session_.find(end->session);
    if (found == by_session_.end()) return;
    Node& node = nodes_[found->second];
    if (node.state == NodeState::kUp) return Break("a node that lives was given up");
    Forget(node);
  } else if (std::holds_alternative<rendezvous::RoundStarted>(effect)) {
    told_ = 0;
    rank_sum_ = 0;
  }
}

void LargeJob::Told(Node& node, const StartRound& start) {
  if (start.world.round.value != round_) {
    if (start.world.round.value < round_) return Break("the round's number fell");
    if (owing_ > 0) return Break("a round began before all had answered the stop");
    round_ = start.world.round.value;
    world_ = start.group_world_size;
    is_running_ = true;
    is_informed_ = false;
    hurt_at_ = Instant::Never();
    ++result_.rounds;
  }
  if (node.state == NodeState::kFailed) hurt_at_ = std::min(hurt_at_, now_);
  node.started = round_;
  ++told_;
  rank_sum_ += static_cast<uint64_t>(start.group_rank.value);
}

void LargeJob::Told(Node& node, const StopRound& stop) {
  if (is_running_) EndStretch(now_);
  stopping_ = stop.world;
  node.owes_answer = true;
  ++owing_;
}

void LargeJob::EndStretch(Instant at) {
  is_running_ = false;
  const Instant end = std::min(at, hurt_at_);
  if (!hurt_at_.IsNever() && outage_began_.IsNever()) outage_began_ = hurt_at_;
  if (!is_informed_) return;
  result_.timeline.stretches.push_back(
      {.begins = informed_at_ - start_, .ends = end - start_, .nodes = world_});
}

void LargeJob::CheckRound() {
  const auto n = static_cast<uint64_t>(world_);
  if (told_ != world_) return Break("not every node of the round was told its place");
  if (world_ < options_.min_nodes || world_ > options_.nodes)
    return Break("a round of " + std::to_string(world_) + " nodes");
  if (rank_sum_ != n * (n - 1) / 2) Break("the ranks are not 0 to " + std::to_string(world_ - 1));
}

void LargeJob::Break(const std::string& rule) {
  if (result_.broken.empty()) result_.broken = rule;
}

Duration LargeJob::Exponential(Duration mean) {
  constexpr int kParts = 1 << 30;
  const double uniform = (chance_.Below(kParts) + 1.0) / kParts;
  return Duration(static_cast<int64_t>(-std::log(uniform) * static_cast<double>(mean.count())));
}

}  // namespace muster::simulation
