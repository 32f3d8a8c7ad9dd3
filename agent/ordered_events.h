// Holds events for the agent's machine back until what they lack is there, and hands them on in the
// order in which they were added: a worker's end waits for the worker's last words, and the end of
// the group waits behind it. Nothing waits beyond its deadline. Used by the agent's loop alone; not
// thread-safe.
#ifndef MUSTER_AGENT_ORDERED_EVENTS_H_
#define MUSTER_AGENT_ORDERED_EVENTS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "agent/core/agent_machine.h"
#include "base/instant.h"

namespace muster::agent {

class OrderedEvents {
 public:
  // What is held at most: ends of workers, a few rounds of a large node. Beyond, the oldest don't
  // wait.
  static constexpr size_t kMostHeld = 4096;

  // `missing` facts are still to come, at the latest at `deadline`. Never gives a number twice.
  uint64_t Add(AgentEvent event, int missing, Instant deadline) {
    held_.push_back({++last_number_, std::move(event), missing, deadline});
    return last_number_;
  }

  // Changes the event while it waits; nothing is complete by that.
  template <class ChangeEvent>
  void Change(uint64_t number, ChangeEvent change) {
    for (Held& held : held_) {
      if (held.number == number) change(held.event);
    }
  }

  // One fact has come: `fill` puts it into the event. Nothing happens if the event is gone.
  template <class Fill>
  void Complete(uint64_t number, Fill fill) {
    for (Held& held : held_) {
      if (held.number != number) continue;
      fill(held.event);
      --held.missing;
      return;
    }
  }

  // The first event, if it is complete or late.
  std::optional<AgentEvent> Take(Instant now) {
    if (held_.empty()) return std::nullopt;
    Held& first = held_.front();
    bool may_go = first.missing <= 0 || now >= first.deadline || held_.size() > kMostHeld;
    if (!may_go) return std::nullopt;
    AgentEvent event = std::move(first.event);
    held_.pop_front();
    return event;
  }

  // When Take() has something although nothing is completed.
  Instant NextDeadline() const { return held_.empty() ? Instant::Never() : held_.front().deadline; }

 private:
  struct Held {
    uint64_t number = 0;
    AgentEvent event;
    int missing = 0;
    Instant deadline;
  };

  std::deque<Held> held_;
  uint64_t last_number_ = 0;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_ORDERED_EVENTS_H_
