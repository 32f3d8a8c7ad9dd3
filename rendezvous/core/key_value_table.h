// The key-value pairs and barriers of one round, with those who wait for them as plain data:
// workers exchange addresses here before they can talk to each other. The server makes one per
// round (RoundStarted), owns it, and drops it at RoundOver; the loop thread alone uses it.
//
// A wait is a number. The table says which waits a change has ended; the server remembers whose RPC
// each is and answers it. Waits that pass their deadline come out of TakeExpired().
#ifndef MUSTER_RENDEZVOUS_CORE_KEY_VALUE_TABLE_H_
#define MUSTER_RENDEZVOUS_CORE_KEY_VALUE_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"

namespace muster::rendezvous {

// A wait of one table; never used twice within it.
using WaitId = StrongInt<struct WaitTag, uint64_t>;

class KeyValueTable {
 public:
  // What one round may hold, so that a worker in a loop can't take the rendezvous' memory.
  struct Limits {
    size_t max_key_bytes = 4096;
    size_t max_value_bytes = 1u << 20;
    size_t max_total_bytes = 256u << 20;
    size_t max_waits = 1u << 20;
    // Barriers of one round; each name is used once.
    size_t max_barriers = 1u << 16;
  };

  // `problem` is empty if it was done, else one sentence (the caller's fault, or a limit reached).
  struct SetResult {
    std::string problem;
    // Waits for this key that have ended: their answer is the value just set.
    std::vector<WaitId> ended;
  };

  struct WaitResult {
    std::string problem;
    // The wait that was begun; meaningless if `problem` is set.
    WaitId wait;
  };

  struct BarrierArrival {
    std::string name;
    // Tells a retry from another participant: a rank, or an agent's incarnation as text.
    std::string participant;
    // How many distinct participants pass together; all must name the same number.
    int count = 0;
    Instant deadline = Instant::Never();
  };

  struct BarrierResult {
    std::string problem;
    // Waits that have ended now, the caller's own included; empty while some are missing.
    std::vector<WaitId> ended;
    // The caller's wait; it may be in `ended` at once.
    WaitId wait;
  };

  KeyValueTable() = default;
  explicit KeyValueTable(Limits limits) : limits_(limits) {}

  // Sets `key`, replacing an earlier value. Safe to retry.
  SetResult Set(const std::string& key, std::string value);
  // What is there now, or null. Valid until the next change of the table.
  const std::string* Get(const std::string& key) const;
  // Begins to wait for a key that isn't set. Call Get() first.
  WaitResult Wait(const std::string& key, Instant deadline);

  // Arrives at a barrier. A participant that comes again (a retry after its answer was lost, or
  // after its deadline) counts once, and passes at once where the barrier has opened.
  BarrierResult Arrive(const BarrierArrival& arrival);

  // The RPC behind this wait is gone. A barrier still counts its participant as arrived.
  void Cancel(WaitId wait);
  // Ends and returns the waits whose deadline is not after `now`, earliest first.
  std::vector<WaitId> TakeExpired(Instant now);
  // Ends and returns every wait: the round is over.
  std::vector<WaitId> TakeAll();
  // When TakeExpired() is next due; Never() if no wait has a deadline.
  Instant NextDeadline() const;

 private:
  struct PendingWait {
    // The key, or the barrier's name.
    std::string name;
    bool is_barrier = false;
    Instant deadline;
  };
  struct Barrier {
    int count = 0;
    bool is_open = false;
    std::unordered_set<std::string> arrived;
    std::set<WaitId> waits;
  };

  WaitId BeginWait(const std::string& name, bool is_barrier, Instant deadline);
  void Forget(WaitId wait);

  Limits limits_{};
  std::unordered_map<std::string, std::string> values_;
  size_t total_bytes_ = 0;
  std::unordered_map<std::string, std::set<WaitId>> key_waits_;
  std::unordered_map<std::string, Barrier> barriers_;
  std::map<WaitId, PendingWait> waits_;
  std::set<std::pair<Instant, WaitId>> deadlines_;
  uint64_t last_wait_ = 0;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_KEY_VALUE_TABLE_H_
