// Who failed first, and how the job's end is told to people. The first failure is the one that
// happened earliest: when its message came minus the age that the agent's own monotonic clock gave
// it; the order of arrival decides between equals. Those that died of it follow. A worker that was
// killed though it only waited for others is no cause where one was seen to hang.
// A value and functions; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_VERDICT_H_
#define MUSTER_RENDEZVOUS_CORE_VERDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/instant.h"
#include "base/job_types.h"

namespace muster::rendezvous {

// The worker failures of one round.
class FailureList {
 public:
  // The root cause and enough followers to see a pattern; a job of 10,000 workers keeps these.
  static constexpr size_t kMaxKept = 64;

  // Notes a failure whose message came at `now`; a repeated report of a rank is dropped.
  void Add(Instant now, const WorkerFailure& failure);
  bool empty() const { return kept_.empty(); }
  // The earliest. Precondition: !empty().
  const WorkerFailure& root() const { return kept_.front().failure; }
  // The earliest that no restart can mend (WorkerFailure::IsHopeless); null if there is none.
  const WorkerFailure* Hopeless() const;
  // The root cause first, then its followers in the order they happened; their ages as of `now`, so
  // that how long after the root cause each followed can be told.
  std::vector<WorkerFailure> InOrder(Instant now) const;

 private:
  struct Entry {
    Instant happened;
    uint64_t arrival = 0;
    WorkerFailure failure;
  };

  // Sorted by (happened, arrival), those that only waited behind those that hang.
  std::vector<Entry> kept_;
  uint64_t arrivals_ = 0;
};

// Adds `text` to what is the reason already ("...; ..."), once, and of many the first few.
void AddReason(std::string& reasons, const std::string& text);

// "worker rank 3 (local rank 1, pid 12) on node b was killed by signal 9".
std::string DescribeFailure(const WorkerFailure& failure);

// The job ends because a worker failed: the code is the root cause's own. `why_not_restarted` is
// the ledger's reason; a program that can't be executed is blamed whatever that says.
Verdict FailedByWorker(Instant now, const FailureList& failures, int restarts_charged,
                       const std::string& why_not_restarted);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_VERDICT_H_
