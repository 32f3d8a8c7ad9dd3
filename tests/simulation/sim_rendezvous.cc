#include "tests/simulation/sim_rendezvous.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/invariants.h"

namespace muster::simulation {

void SimRendezvous::Start() {
  ++life_;
  rendezvous::JobOptions options;
  options.lease = parts_.options.lease;
  options.reconnect_timeout = parts_.options.reconnect_timeout;
  options.startup_quiet = parts_.options.startup_quiet;
  options.set_aside_for = parts_.options.set_aside_for;
  options.checkpoint_patience = parts_.options.shutdown_timeout;
  if (parts_.options.keeps_state) options.record = kept_;
  machine_.emplace(parts_.options.terms.run_id, options, LocalNow());
  timer_at_ = Instant::Never();
  parts_.network.SetServerUp();
  parts_.invariants.RendezvousStarted(options.record);
  WatchTimer();
}

void SimRendezvous::Crash() {
  machine_.reset();
  inbox_.clear();
  is_stalled_ = false;
  parts_.invariants.RendezvousCrashed();
  parts_.network.SetServerDown();
}

void SimRendezvous::Stall() {
  is_stalled_ = true;
  parts_.network.SetServerStalled(true);
}

void SimRendezvous::Thaw() {
  if (!is_stalled_) return;
  is_stalled_ = false;
  parts_.network.SetServerStalled(false);
  Drain();
  WatchTimer();
}

void SimRendezvous::StopHost(const std::string& reason, int exit_code) {
  Take(rendezvous::HostStopping{.reason = reason, .exit_code = exit_code});
}

void SimRendezvous::DrainNode(const Incarnation& incarnation) {
  Take(rendezvous::NodeDrained{.incarnation = incarnation});
}

void SimRendezvous::MessageCame(SessionId session, AgentMessage message) {
  Take(rendezvous::SessionMessage{.session = session, .message = std::move(message)});
}

void SimRendezvous::StreamEnded(SessionId session) { Take(rendezvous::SessionEnded{session}); }

void SimRendezvous::Take(rendezvous::JobEvent event) {
  if (!is_up()) return;
  inbox_.push_back(std::move(event));
  if (!is_stalled_) Drain();
}

void SimRendezvous::Drain() {
  while (!inbox_.empty()) {
    rendezvous::JobEvent event = std::move(inbox_.front());
    inbox_.pop_front();
    Step(event);
  }
}

void SimRendezvous::Step(const rendezvous::JobEvent& event) {
  parts_.invariants.RendezvousHears(event);
  if (parts_.options.terms.max_node_failures > 0) {
    parts_.invariants.NoteSetAside(machine_->Status(LocalNow()).nodes);
    // Some may have been set aside for long enough, and be taken at once.
    if (std::holds_alternative<rendezvous::TimePassed>(event)) parts_.invariants.ForgetSetAside();
  }
  rendezvous::StepInput input{.now = LocalNow(),
                              .fresh_world_id = parts_.random.FreshId<WorldId>(),
                              .fresh_round_key = parts_.random.FreshId<RoundKey>()};
  const Instant due = machine_->NextWakeup();
  std::vector<rendezvous::JobEffect> effects = machine_->Step(input, event);
  parts_.invariants.RendezvousSays(input, effects);
  for (rendezvous::JobEffect& effect : effects) {
    std::visit([this](auto& e) { Perform(e); }, effect);
  }
  if (std::holds_alternative<rendezvous::TimePassed>(event)) {
    parts_.invariants.CheckWakeup("rendezvous", LocalNow(), machine_->NextWakeup());
  } else {
    parts_.invariants.CheckStillDue("rendezvous", LocalNow(), due, machine_->NextWakeup());
  }
  WatchTimer();
}

void SimRendezvous::WatchTimer() {
  Instant next = machine_->NextWakeup() - clock_offset_;
  if (next.IsNever() || next >= timer_at_) return;
  timer_at_ = next;
  parts_.queue.At(next + parts_.random.Between(Duration(0), parts_.options.timer_lag),
                  Act::kRendezvousTimer, life_);
}

void SimRendezvous::HandleTimer() {
  timer_at_ = Instant::Never();
  if (is_stalled_) return;
  if (LocalNow() >= machine_->NextWakeup()) {
    Step(rendezvous::TimePassed{});
  } else {
    WatchTimer();
  }
}

void SimRendezvous::Perform(rendezvous::SendMessage& effect) {
  parts_.network.SendToAgent(effect.session, std::move(effect.message));
}

void SimRendezvous::Perform(rendezvous::EndSession& effect) {
  parts_.network.CloseServerEnd(effect.session);
}

void SimRendezvous::Perform(rendezvous::KeepRecord& effect) { kept_ = std::move(effect.record); }

void SimRendezvous::Perform(rendezvous::Record& effect) {
  if (parts_.trace.is_on()) parts_.trace.Add(parts_.queue.now(), "rendezvous: " + effect.text);
}

}  // namespace muster::simulation
