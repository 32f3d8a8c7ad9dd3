// A job of very many nodes over hours, for how much of its time is useful: the real JobMachine on a
// virtual clock; nodes that fail at random, are noticed, repaired, and come back. The nodes are
// played: they answer what they are told, and those that live keep their leases. Time jumps from
// one event to the next, so a job of 100,000 nodes takes seconds. One object is one run; not
// thread-safe.
#ifndef MUSTER_TESTS_SIMULATION_LARGE_JOB_H_
#define MUSTER_TESTS_SIMULATION_LARGE_JOB_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/core/job_machine.h"
#include "tests/simulation/goodput.h"
#include "tests/simulation/sim_random.h"

namespace muster::simulation {

struct LargeJobOptions {
  // MAX of the job; MIN is min_nodes.
  int nodes = 100'000;
  int min_nodes = 90'000;
  // Nodes beyond MAX.
  int spares = 64;
  // Between two failures of one node, in the mean.
  Duration node_mtbf = std::chrono::hours(24 * 264);
  // From a node's failure until it joins again.
  Duration repair = std::chrono::hours(1);
  // Absent: a node that fails closes its stream. Else it falls silent, and is noticed by the lease.
  std::optional<Duration> lease = std::chrono::seconds(3);
  // What the rendezvous takes for one message.
  Duration message_takes = std::chrono::microseconds(35);
  Duration horizon = std::chrono::hours(2);
  uint64_t seed = 1;
};

struct LargeJobResult {
  Timeline timeline;
  int failures = 0;
  int rounds = 0;
  int64_t messages = 0;
  // From a failure in a running round until every node knows its place in the next, in the mean.
  Duration outage{0};
  // Empty, or the first rule that was broken.
  std::string broken;
};

class LargeJob {
 public:
  explicit LargeJob(LargeJobOptions options);
  LargeJobResult Run();

 private:
  // Ordered by time, then by entry.
  struct Due {
    enum class What { kFailureComes, kFails, kReturns, kTick, kBeat, kAnswers, kInformed };
    Instant at;
    uint64_t order = 0;
    What what = What::kTick;
    int node = 0;
    uint64_t round = 0;
    bool operator<(const Due& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  enum class NodeState { kUp, kFailed, kAway };
  struct Node {
    NodeState state = NodeState::kAway;
    SessionId session;
    Incarnation incarnation;
    Instant failed_at;
    // The round it was last told to start, and to stop.
    uint64_t started = 0;
    bool owes_answer = false;
  };

  void Begin();
  void At(Instant at, Due::What what, int node = 0, uint64_t round = 0);
  void Handle(const Due& due);
  void FailureComes();
  void Fail(int node);
  void Forget(Node& node);
  void Return(int node);
  void Answer();
  void Informed(uint64_t round);
  void Beat();
  // The machine's own timer, while it could decide something by time alone.
  void KeepTicking();
  bool IsWatched() const;
  void Step(const rendezvous::JobEvent& event);
  void Say(const Node& node, AgentMessage message);
  void Perform(const rendezvous::JobEffect& effect);
  void Told(Node& node, const StartRound& start);
  void Told(Node& node, const StopRound& stop);
  void EndStretch(Instant at);
  void CheckRound();
  void Break(const std::string& rule);
  Duration Exponential(Duration mean);

  const LargeJobOptions options_;
  // Who fails when: the same whatever the lease. The rest is drawn apart.
  SimRandom chance_;
  SimRandom random_;
  rendezvous::JobMachine machine_;
  const Instant start_;
  Instant now_;
  uint64_t order_ = 0;
  std::vector<Due> queue_;
  std::vector<Node> nodes_;
  std::unordered_map<SessionId, int> by_session_;
  uint64_t last_session_ = 0;
  // Failed, and not yet noticed.
  int unnoticed_ = 0;
  bool beats_ = false;
  Instant tick_at_ = Instant::Never();
  // Told to stop in this step and not yet answered.
  int owing_ = 0;
  World stopping_;

  // The round that runs or is being told.
  uint64_t round_ = 0;
  int told_ = 0;
  int world_ = 0;
  uint64_t rank_sum_ = 0;
  bool is_running_ = false;
  bool is_informed_ = false;
  Instant informed_at_;
  // The first failure in it.
  Instant hurt_at_ = Instant::Never();
  // The failure that the next round answers.
  Instant outage_began_ = Instant::Never();
  Duration outages_{0};
  int outage_count_ = 0;
  LargeJobResult result_;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_LARGE_JOB_H_
