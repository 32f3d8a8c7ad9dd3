// What failures have cost: the job's restart budget, and the losses of each node. Worker failures
// are charged to the job; the loss of a node is free, but a node that is lost again and again
// without progress in between is set aside. A value; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_RESTART_LEDGER_H_
#define MUSTER_RENDEZVOUS_CORE_RESTART_LEDGER_H_

#include <string>
#include <unordered_map>

#include "base/instant.h"

namespace muster::rendezvous {

class RestartLedger {
 public:
  struct Options {
    // Losses of one node that are forgiven between two signs of progress; 0: any number.
    int max_node_failures = 0;
    // A node that was in a round for this long has made progress.
    Duration good_uptime = std::chrono::seconds(60);
  };

  explicit RestartLedger(Options options) : options_(options) {}

  int charged() const { return charged_; }
  // Takes one restart from the budget. False, and nothing is taken, when none is left.
  bool Charge(int max_restarts);
  // A re-attaching agent knows of this many charges: the highest report counts.
  void LearnCharged(int charged);

  // A node was lost after `uptime` in its round. True if it is set aside from now on.
  bool NodeLost(const std::string& node_name, Duration uptime);
  // A checkpoint was committed: every node starts afresh.
  void Committed() { losses_.clear(); }
  bool IsSetAside(const std::string& node_name) const;

 private:
  // Names kept at most; more different nodes than this can't be in a job.
  static constexpr size_t kMaxNames = 1u << 17;

  Options options_;
  int charged_ = 0;
  std::unordered_map<std::string, int> losses_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_RESTART_LEDGER_H_
