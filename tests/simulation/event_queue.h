// The simulation's clock and calendar: what happens next, in order of virtual time and, at one
// instant, in the order in which it was entered. Owned by SimWorld; one thread.
#ifndef MUSTER_TESTS_SIMULATION_EVENT_QUEUE_H_
#define MUSTER_TESTS_SIMULATION_EVENT_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/instant.h"

namespace muster::simulation {

// What can be due. `who` and `what` are indices whose meaning depends on it.
enum class Act : uint8_t {
  kDeliver,           // stream, direction: its oldest item arrives
  kSideBreaks,        // stream, side: that end gets an error
  kConnectArrives,    // stream: the opening reaches the rendezvous' machine
  kConnectRefused,    // stream: the refusal reaches the agent
  kConnectTimesOut,   // stream: nobody answered
  kProbeArrives,      // agent: its plain connection reaches the rendezvous' machine
  kProbeAnswered,     // agent, 1 if it was refused
  kAgentTimer,        // agent: its loop's timer
  kAgentReplays,      // agent, index of a kept message: it is sent once more
  kGuardianDeadline,  // agent: the guardian looks whether its deadline was renewed
  kGuardianKills,     // agent: the guardian ends all workers
  kWorkerStarts,      // agent, worker
  kWorkerDies,        // agent, worker: by the exit that it was given
  kGroupSwept,        // agent, group: nothing is left of it
  kRendezvousTimer,   // -
  kRendezvousStarts,  // -: after a crash
  kRendezvousThaws,   // -: after a stall
  kFault,             // -, index in the plan
  kFaultEnds,         // agent or host, index in the plan
  kAgentStarts,       // index in the list of agents to come
  kCheckpoint,        // world: a checkpoint is due
  kShardWritten,      // world, rank
  kPublished,         // world
  kStepsReported,     // world: its workers report a step, and that they save when they are asked
  kStepNamed,         // world: rank 0 names a step to save after
  kStepKnown,         // world, rank: it knows that step
  kAgreedSave,        // world: it saves after that step
  kWorldFinishes,     // world: its workers come to their end
  kMustBeSettled,     // -
  kMustHaveEnded,     // -
};

struct Due {
  Instant at;
  uint64_t order = 0;
  Act act = Act::kDeliver;
  int who = 0;
  int what = 0;
};

class EventQueue {
 public:
  Instant now() const { return now_; }
  bool is_empty() const { return heap_.empty(); }

  void At(Instant at, Act act, int who = 0, int what = 0) {
    heap_.push_back({std::max(at, now_), ++order_, act, who, what});
    std::push_heap(heap_.begin(), heap_.end(), IsLater);
  }
  void After(Duration wait, Act act, int who = 0, int what = 0) { At(now_ + wait, act, who, what); }

  // Takes the next one off and moves the clock to it. The queue must not be empty.
  Due Pop() {
    std::pop_heap(heap_.begin(), heap_.end(), IsLater);
    Due due = heap_.back();
    heap_.pop_back();
    now_ = due.at;
    return due;
  }

 private:
  static bool IsLater(const Due& a, const Due& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  // Not zero, so that a forgotten Instant{} is seen to be in the past.
  Instant now_{std::chrono::seconds(1000)};
  uint64_t order_ = 0;
  std::vector<Due> heap_;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_EVENT_QUEUE_H_
