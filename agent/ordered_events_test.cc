#include "agent/ordered_events.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <variant>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

constexpr Instant At(int ms) { return Instant(milliseconds(ms)); }

AgentEvent EndOf(int local_rank) {
  return WorkerEnded{.round = RoundId(1), .local_rank = LocalRank(local_rank), .failure = {}};
}

// The local rank of a worker's end, 100 for the group's, -1 for nothing.
int Taken(OrderedEvents* events, int now_ms) {
  std::optional<AgentEvent> event = events->Take(At(now_ms));
  if (!event) return -1;
  const auto* ended = std::get_if<WorkerEnded>(&*event);
  return ended != nullptr ? ended->local_rank.value : 100;
}

TEST(OrderedEvents, HandsOnCompleteEventsAtOnce) {
  OrderedEvents events;
  EXPECT_TRUE(events.NextDeadline().IsNever());
  events.Add(EndOf(0), 0, At(0));
  EXPECT_EQ(Taken(&events, 0), 0);
  EXPECT_EQ(Taken(&events, 0), -1);
}

TEST(OrderedEvents, KeepsTheOrderThoughALaterOneIsCompleteFirst) {
  OrderedEvents events;
  uint64_t first = events.Add(EndOf(0), 2, At(500));
  uint64_t second = events.Add(EndOf(1), 1, At(500));
  events.Add(GroupGone{.round = RoundId(1)}, 0, At(0));
  events.Complete(second, [](AgentEvent&) {});
  EXPECT_EQ(Taken(&events, 1), -1);
  events.Complete(first,
                  [](AgentEvent& event) { std::get<WorkerEnded>(event).failure.message = "why"; });
  EXPECT_EQ(Taken(&events, 1), -1);
  events.Complete(first, [](AgentEvent& event) {
    EXPECT_EQ(std::get<WorkerEnded>(event).failure.message, "why");
  });
  EXPECT_EQ(Taken(&events, 1), 0);
  EXPECT_EQ(Taken(&events, 1), 1);
  EXPECT_EQ(Taken(&events, 1), 100);
}

TEST(OrderedEvents, ChangesWhatWaitsWithoutCompletingIt) {
  OrderedEvents events;
  uint64_t number = events.Add(EndOf(0), 1, At(500));
  events.Change(number,
                [](AgentEvent& event) { std::get<WorkerEnded>(event).local_rank = LocalRank(7); });
  events.Change(number + 1, [](AgentEvent&) { FAIL() << "there is no such event"; });
  EXPECT_EQ(Taken(&events, 1), -1);
  events.Complete(number, [](AgentEvent&) {});
  EXPECT_EQ(Taken(&events, 1), 7);
}

TEST(OrderedEvents, WaitsNoLongerThanTheDeadline) {
  OrderedEvents events;
  uint64_t first = events.Add(EndOf(0), 1, At(500));
  EXPECT_EQ(events.NextDeadline(), At(500));
  EXPECT_EQ(Taken(&events, 499), -1);
  EXPECT_EQ(Taken(&events, 500), 0);
  // A fact that comes too late finds nothing.
  events.Complete(first, [](AgentEvent&) { ADD_FAILURE() << "the event is gone"; });
}

TEST(OrderedEvents, HoldsABoundedNumber) {
  OrderedEvents events;
  for (size_t i = 0; i < OrderedEvents::kMostHeld; ++i) events.Add(EndOf(0), 1, At(500));
  EXPECT_EQ(Taken(&events, 0), -1);
  events.Add(EndOf(1), 1, At(500));
  EXPECT_EQ(Taken(&events, 0), 0);
  EXPECT_EQ(Taken(&events, 0), -1);
}

}  // namespace
}  // namespace muster::agent
