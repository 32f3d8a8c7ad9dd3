// Faults that can be planted into the cores, to prove that the simulation finds them. In the
// product MUSTER_PLANTED(fault, wrong, right) is `right` and nothing else; only the cores that are
// compiled once more for tests/simulation (with MUSTER_PLANT_FAULTS defined) can take `wrong`.
#ifndef MUSTER_BASE_PLANTED_FAULT_H_
#define MUSTER_BASE_PLANTED_FAULT_H_

namespace muster {

enum class PlantedFault {
  kNone,
  // One line each; the simulation has a test for every one.
  kFencingOff,              // stale world ids and rounds are not refused
  kLeaseComparedBackwards,  // a lease counts as over when it is not, and the reverse
  kBudgetChargedTwice,      // a worker failure costs two restarts
  kNoRecovering,            // a restarted rendezvous forms a world beside a running one
  kStopNotAwaited,          // a new round starts before all stops are acknowledged
  kRanksHaveHoles,          // the place of a lost node is not filled
  kBelowMinRuns,            // a round starts with fewer than MIN nodes
  kRoundNumberReused,       // the next round has the number of the last
  kStaleCommitGranted,      // a commit is granted to an older round
  kLossCharged,             // the loss of a node costs a restart
  kSpareForgotten,          // a spare isn't taken in when a place becomes free
  kSuccessTooEarly,         // the job succeeds before all nodes have
  kHourForgotten,           // --max-restarts-per-hour is not kept
  kProgressIsStuck,         // rounds count as stuck though steps and commits get on
  kSetAsideIgnored,         // a node that is set aside gets a place
  kGrowsAfterSuccess,       // a newcomer stops a round whose first workers have finished
  kLeaverKept,              // a node that wants to go is taken into the next round
  kStepNotAwaited,          // rank 0 goes on before all nodes know the step to save after
  kCommitNotKept,           // --state-dir knows the rounds, not the commits
  kDueTimerPutOff,          // events that come before a due timer was served put it off
};

#ifdef MUSTER_PLANT_FAULTS
// The one that is planted now. One thread; only tests set it.
inline PlantedFault planted_fault = PlantedFault::kNone;
#define MUSTER_PLANTED(fault, wrong, right) \
  (::muster::planted_fault == ::muster::PlantedFault::fault ? (wrong) : (right))
#else
#define MUSTER_PLANTED(fault, wrong, right) (right)
#endif

}  // namespace muster

#endif  // MUSTER_BASE_PLANTED_FAULT_H_
