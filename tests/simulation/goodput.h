// How much of a job's time is useful: a timeline of who trained when, and checkpoints laid over it.
// Checkpoints don't change who is a member, so one timeline serves every interval. Pure functions;
// thread-safe.
#ifndef MUSTER_TESTS_SIMULATION_GOODPUT_H_
#define MUSTER_TESTS_SIMULATION_GOODPUT_H_

#include <vector>

#include "base/instant.h"

namespace muster::simulation {

// One round as its workers saw it.
struct Stretch {
  // Every node knows its place: workers start.
  Duration begins{0};
  // Its first node failed, or it was told to stop: nothing later is progress. May be before
  // `begins`.
  Duration ends{0};
  int nodes = 0;
};

struct Timeline {
  std::vector<Stretch> stretches;
  // The time that is judged; the last stretch may end with it.
  Duration horizon{0};
};

struct CheckpointCosts {
  // Training between two checkpoints.
  Duration interval{0};
  // Taken from the training for each.
  Duration pause{0};
  // After the pause, until it is committed.
  Duration until_committed{0};
  // From a round's start until its workers train, the newest checkpoint loaded.
  Duration restart{0};
};

// Training that a round of this length keeps: up to its newest committed checkpoint.
Duration Kept(Duration length, const CheckpointCosts& costs);

// Of the horizon, weighted by the part of `full_nodes` that trained. The last stretch keeps all
// that it trained if it lasts to the horizon.
double UsefulFraction(const Timeline& timeline, int full_nodes, const CheckpointCosts& costs);

// The same in closed form (Daly 2006) where failures come at random, `mtbf` apart in the mean, each
// costs `outage` until the workers start again, which a failure may interrupt, and checkpoints are
// committed at once.
double ExpectedFraction(Duration mtbf, Duration outage, const CheckpointCosts& costs);

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_GOODPUT_H_
