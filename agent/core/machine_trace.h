// Drives an AgentMachine in tests and tells its effects as text, so that a reviewer reads
// behaviour. Used on the test's thread.
#ifndef MUSTER_AGENT_CORE_MACHINE_TRACE_H_
#define MUSTER_AGENT_CORE_MACHINE_TRACE_H_

#include <string>
#include <vector>

#include "agent/core/agent_machine.h"
#include "base/ids.h"
#include "base/session_messages.h"

namespace muster::agent {

// "connect", "send StopDone r1", "stop r1 signal 15 grace 30000", "end 69", ...
std::string EffectText(const AgentEffect& effect);

class TracedMachine {
 public:
  // Node "n0" with two workers, lease 3 s.
  static AgentOptions DefaultOptions();

  explicit TracedMachine(AgentOptions options = DefaultOptions());

  // Takes an event at a virtual millisecond and returns the effects, joined by "; ", or "-". Lines
  // shown to people are told as "show".
  std::string At(int64_t ms, const AgentEvent& event);
  std::string At(int64_t ms, RendezvousMessage message) {
    return At(ms, RendezvousSaid{std::move(message)});
  }
  // The effects of the newest At().
  const std::vector<AgentEffect>& effects() const { return effects_; }
  // What was shown last.
  const std::string& shown() const { return shown_; }
  const Verdict& verdict() const { return verdict_; }
  AgentMachine& machine() { return machine_; }
  // NextWakeup() in milliseconds, -1 for never.
  int64_t wakeup_ms() const;

 private:
  AgentMachine machine_;
  std::vector<AgentEffect> effects_;
  std::string shown_;
  Verdict verdict_;
  uint8_t fresh_ = 100;
};

// Worlds are numbered: round `round`, id made of the number.
World WorldOf(uint64_t round);
StartRound StartOf(uint64_t round, int attempt = 0);
StopRound StopOf(uint64_t round, StopCause cause = StopCause::kWorkerFailed);
WorkerEnded EndOf(uint64_t round, int local_rank, WorkerExit exit);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_MACHINE_TRACE_H_
