// Which nodes were lost again and again without progress in between, and are set aside for that
// (--max-node-failures). A node is known by its name, so a replacement on the same host inherits
// what was lost before: it is let in, and waits. A sign of progress, or time, forgives.
//
// Starts afresh with the rendezvous. A value; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_NODE_LOSSES_H_
#define MUSTER_RENDEZVOUS_CORE_NODE_LOSSES_H_

#include <optional>
#include <string>
#include <unordered_map>

#include "base/instant.h"

namespace muster::rendezvous {

class NodeLosses {
 public:
  struct Options {
    // A node that was in a round for this long has made progress.
    Duration good_uptime = std::chrono::seconds(60);
    // After its last loss a node is set aside for so long: whoever mends a node need not wait for a
    // checkpoint, and a job that makes none gets its nodes back.
    Duration set_aside_for = std::chrono::minutes(10);
  };

  struct Loss {
    Instant at;
    // In the round that lost it.
    Duration uptime{0};
    // Losses without progress after which it is set aside; 0: never.
    int limit = 0;
  };

  explicit NodeLosses(Options options) : options_(options) {}

  // True if the node is set aside from now on.
  bool Add(const std::string& node_name, const Loss& loss);
  // A checkpoint was committed: every node starts afresh.
  void Committed() { nodes_.clear(); }
  // None if it may take part.
  std::optional<Instant> SetAsideUntil(const std::string& node_name, Instant now) const;
  // Losses since the last progress.
  int CountOf(const std::string& node_name) const;

 private:
  // Names kept at most; more different nodes than this can't be in a job.
  static constexpr size_t kMaxNames = 1u << 17;

  struct Node {
    int losses = 0;
    // None while it may take part.
    std::optional<Instant> set_aside_until;
  };

  Options options_;
  std::unordered_map<std::string, Node> nodes_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_NODE_LOSSES_H_
