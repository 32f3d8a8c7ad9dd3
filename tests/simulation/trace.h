// What happened, in words: kept only when asked for, since a run without it takes milliseconds and
// can be repeated with it. Owned by whoever runs a seed; one thread.
#ifndef MUSTER_TESTS_SIMULATION_TRACE_H_
#define MUSTER_TESTS_SIMULATION_TRACE_H_

#include <deque>
#include <string>

#include "base/instant.h"
#include "base/session_messages.h"

namespace muster::simulation {

class Trace {
 public:
  // Lines that are kept; older ones are dropped.
  static constexpr size_t kMostLines = 200000;

  bool is_on() const { return is_on_; }
  void TurnOn() { is_on_ = true; }
  // Call only if is_on(): the text costs more than the step it tells of.
  void Add(Instant now, const std::string& text);
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  bool is_on_ = false;
  std::deque<std::string> lines_;
};

// One message in a few words: "StartRound round 3 rank 2.. of 6".
std::string Describe(const AgentMessage& message);
std::string Describe(const RendezvousMessage& message);
std::string Describe(const World& world);
std::string Describe(const Verdict& verdict);

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_TRACE_H_
