// The rendezvous process: the real JobMachine in a small shell that reads queued events before its
// timer, can stand still, and can crash and come back with nothing but what --state-dir kept. Owned
// by SimWorld; one thread.
#ifndef MUSTER_TESTS_SIMULATION_SIM_RENDEZVOUS_H_
#define MUSTER_TESTS_SIMULATION_SIM_RENDEZVOUS_H_

#include <deque>
#include <optional>
#include <string>

#include "rendezvous/core/job_machine.h"
#include "tests/simulation/sim_parts.h"

namespace muster::simulation {

class SimRendezvous {
 public:
  // `parts` must outlive it. It is down until Start().
  SimRendezvous(SimParts& parts, Duration clock_offset)
      : parts_(parts), clock_offset_(clock_offset) {}

  void Start();
  void Crash();
  void Stall();
  void Thaw();
  // As HostStopping. It must be up.
  void StopHost(const std::string& reason, int exit_code);
  void DrainNode(const Incarnation& incarnation);

  bool is_up() const { return machine_.has_value(); }
  bool is_stalled() const { return is_stalled_; }
  int life() const { return life_; }
  rendezvous::JobState state() const { return machine_->state(); }
  bool has_ended() const {
    return is_up() && (state() == rendezvous::JobState::kSucceeded ||
                       state() == rendezvous::JobState::kFailed);
  }

  void MessageCame(SessionId session, AgentMessage message);
  void StreamEnded(SessionId session);
  // kRendezvousTimer.
  void HandleTimer();

 private:
  Instant LocalNow() const { return parts_.queue.now() + clock_offset_; }
  void Take(rendezvous::JobEvent event);
  void Drain();
  void Step(const rendezvous::JobEvent& event);
  void WatchTimer();

  void Perform(rendezvous::SendMessage& effect);
  void Perform(rendezvous::EndSession& effect);
  void Perform(rendezvous::RoundStarted&) {}
  void Perform(rendezvous::KeepRecord& effect);
  void Perform(rendezvous::RoundOver&) {}
  void Perform(rendezvous::Record& effect);

  SimParts& parts_;
  const Duration clock_offset_;
  std::optional<rendezvous::JobMachine> machine_;
  bool is_stalled_ = false;
  int life_ = 0;
  Instant timer_at_ = Instant::Never();
  std::deque<rendezvous::JobEvent> inbox_;
  // --state-dir.
  rendezvous::JobRecord kept_;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_SIM_RENDEZVOUS_H_
