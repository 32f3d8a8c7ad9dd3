#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "agent/core/agent_machine.h"
#include "base/clock.h"
#include "base/entropy.h"
#include "base/mutex.h"
#include "base/version.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "tests/load/crowd.h"

namespace muster::load {
namespace {

using agent::AgentEffect;
using agent::AgentEvent;
using agent::AgentMachine;

// Nobody opens it: finding a free port is the node's own work, not the rendezvous'.
constexpr uint16_t kCandidatePort = 40000;

class AgentCrowd;

// One node. gRPC's threads and the timer's step its machine themselves, under its lock: a thread of
// its own for each of thousands would measure the threads.
class Member : public rendezvous::SessionObserver {
 public:
  Member(AgentCrowd* crowd, size_t index) : crowd_(crowd), index_(index) {}
  void Start(const CrowdOptions& options);
  void OnTimer() { Take(0, agent::TimePassed{}); }

  void OnConnected(uint64_t connection) override;
  void OnMessage(uint64_t connection, RendezvousMessage message) override {
    Take(connection, agent::RendezvousSaid{std::move(message)});
  }
  void OnDisconnected(uint64_t connection, absl::Status why) override;

 private:
  // `connection` 0: not about a stream.
  void Take(uint64_t connection, AgentEvent event);
  void Drain() MUSTER_REQUIRES(mutex_);
  void PerformAll(std::vector<AgentEffect> effects) MUSTER_REQUIRES(mutex_) {
    for (AgentEffect& effect : effects) Perform(effect);
  }
  void Perform(AgentEffect& effect) MUSTER_REQUIRES(mutex_);

  AgentCrowd* const crowd_;
  const size_t index_;
  base::Mutex mutex_;
  std::unique_ptr<AgentMachine> machine_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<rendezvous::RendezvousClient> client_ MUSTER_GUARDED_BY(mutex_);
  uint64_t connection_ MUSTER_GUARDED_BY(mutex_) = 0;
  Instant timer_ MUSTER_GUARDED_BY(mutex_) = Instant::Never();
  // What happened, and what its played workers have to say.
  std::deque<AgentEvent> owed_ MUSTER_GUARDED_BY(mutex_);
};

class AgentCrowd : public Crowd {
 public:
  AgentCrowd(CrowdOptions options, Tally* tally)
      : options_(std::move(options)), tally_(tally), timer_thread_([this] { Run(); }) {}
  // Never: the crowd ends with its process, and so do the threads of its clients.
  ~AgentCrowd() override { std::abort(); }

  void Add(int count) override {
    tally_->Expect(count);
    for (int i = 0; i < count; ++i) {
      Member* member = nullptr;
      {
        base::MutexLock lock(mutex_);
        members_.push_back(std::make_unique<Member>(this, members_.size()));
        member = members_.back().get();
      }
      member->Start(options_);
    }
  }

  Tally& tally() { return *tally_; }
  // A member's next timer moved; called under the member's lock.
  void MoveTimer(size_t index, Instant from, Instant to) {
    base::MutexLock lock(mutex_);
    if (!from.IsNever()) timers_.erase({from, index});
    if (!to.IsNever()) timers_.insert({to, index});
    // Heartbeats only move it away; what is sooner than the next look is rare.
    if (!to.IsNever() && to < next_look_) changed_.notify_one();
  }

 private:
  void Run() {
    std::vector<Member*> due;
    while (true) {
      {
        base::MutexLock lock(mutex_);
        next_look_ = timers_.empty() ? Instant::Never() : timers_.begin()->first;
        const Duration wait = std::clamp(next_look_ - SystemClock().Now(), Duration(0),
                                         Duration(std::chrono::seconds(1)));
        changed_.wait_until(mutex_, std::chrono::steady_clock::now() + wait);
        const Instant now = SystemClock().Now();
        for (const auto& [at, index] : timers_) {
          if (at > now) break;
          due.push_back(members_[index].get());
        }
      }
      for (Member* member : due) member->OnTimer();
      due.clear();
    }
  }

  const CrowdOptions options_;
  Tally* const tally_;
  base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::unique_ptr<Member>> members_ MUSTER_GUARDED_BY(mutex_);
  std::set<std::pair<Instant, size_t>> timers_ MUSTER_GUARDED_BY(mutex_);
  Instant next_look_ MUSTER_GUARDED_BY(mutex_);
  std::thread timer_thread_;
};

void Member::Start(const CrowdOptions& crowd) {
  char name[32];
  std::snprintf(name, sizeof name, "-%05zu", index_);
  agent::AgentOptions options;
  options.endpoint = "127.0.0.1:" + std::to_string(crowd.port);
  options.attach.node_name = crowd.name + name;
  options.attach.address = "127.0.0.1";
  options.attach.terms.run_id = "load";
  options.attach.terms.min_nodes = crowd.min_nodes;
  options.attach.terms.max_nodes = crowd.max_nodes;
  // The measurement says when all are there.
  options.attach.terms.last_call_timeout = std::chrono::hours(1);
  options.attach.terms.version = kVersion;
  base::MutexLock lock(mutex_);
  client_ = rendezvous::NewGrpcRendezvousClient({.host = "127.0.0.1", .port = crowd.port}, this);
  machine_ = std::make_unique<AgentMachine>(std::move(options), base::FreshId<Incarnation>(),
                                            SystemClock().Now());
  PerformAll(machine_->Start());
  Drain();
}

void Member::OnConnected(uint64_t connection) {
  bool is_own = false;
  {
    base::MutexLock lock(mutex_);
    is_own = client_->IsToOwnAddress();
  }
  Take(connection, agent::RendezvousConnected{.to_own_address = is_own});
}

void Member::OnDisconnected(uint64_t connection, absl::Status why) {
  crowd_->tally().Disturbed(std::string(why.message()));
  Take(connection, agent::RendezvousDisconnected{.why = std::string(why.message())});
}

void Member::Take(uint64_t connection, AgentEvent event) {
  base::MutexLock lock(mutex_);
  if (connection != 0 && connection != connection_) return;
  if (const auto* said = std::get_if<agent::RendezvousSaid>(&event)) {
    Tally& tally = crowd_->tally();
    if (std::holds_alternative<Attached>(said->message)) {
      tally.Attached();
    } else if (const auto* stop = std::get_if<StopRound>(&said->message)) {
      tally.Stopped(stop->world.round.value);
    } else if (const auto* start = std::get_if<StartRound>(&said->message)) {
      tally.Started(start->world.round.value, start->group_rank.value, start->group_world_size);
    } else if (const auto* refused = std::get_if<Refused>(&said->message)) {
      tally.Disturbed("refused: " + refused->message);
    }
  }
  owed_.push_back(std::move(event));
  Drain();
}

void Member::Drain() {
  while (!owed_.empty()) {
    const AgentEvent event = std::move(owed_.front());
    owed_.pop_front();
    const agent::StepInput input{.now = SystemClock().Now(),
                                 .fresh_incarnation = base::FreshId<Incarnation>()};
    PerformAll(machine_->Step(input, event));
  }
  const Instant next = machine_->NextWakeup();
  if (next == timer_) return;
  crowd_->MoveTimer(index_, timer_, next);
  timer_ = next;
}

void Member::Perform(AgentEffect& effect) {
  if (std::holds_alternative<agent::Connect>(effect)) {
    connection_ = client_->Connect();
  } else if (std::holds_alternative<agent::Disconnect>(effect)) {
    client_->Disconnect();
    connection_ = 0;
  } else if (std::holds_alternative<agent::ProbeEndpoint>(effect)) {
    // It has lost contact, which spoils the measurement anyhow; a real probe takes a thread.
    owed_.push_back(agent::EndpointProbed{});
  } else if (auto* send = std::get_if<agent::SendToRendezvous>(&effect)) {
    if (auto* attach = std::get_if<Attach>(&send->message)) {
      attach->candidate_port = kCandidatePort;
    } else if (auto* done = std::get_if<StopDone>(&send->message)) {
      done->candidate_port = kCandidatePort;
    }
    client_->Send(send->message);
  } else if (auto* spawn = std::get_if<agent::SpawnGroup>(&effect)) {
    owed_.push_back(agent::WorkerStarted{
        .round = spawn->place.world.round, .local_rank = LocalRank(0), .pid = 1});
  } else if (auto* stop = std::get_if<agent::StopGroup>(&effect)) {
    owed_.push_back(agent::GroupGone{.round = stop->round});
  } else if (auto* end = std::get_if<agent::End>(&effect)) {
    crowd_->tally().Disturbed("a node ended: " + end->verdict.reason);
  }
}

}  // namespace

std::unique_ptr<Crowd> NewAgentCrowd(const CrowdOptions& options, Tally* tally) {
  return std::make_unique<AgentCrowd>(options, tally);
}

}  // namespace muster::load
