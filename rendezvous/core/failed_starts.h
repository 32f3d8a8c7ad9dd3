// Nodes that were to join and couldn't start, with the cause in their own words: for those who wait
// for them. A node that came since is no longer named. A value; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_FAILED_STARTS_H_
#define MUSTER_RENDEZVOUS_CORE_FAILED_STARTS_H_

#include <cstddef>
#include <deque>
#include <string>

#include "base/instant.h"

namespace muster::rendezvous {

class FailedStarts {
 public:
  // The latest so many nodes are kept: enough to see a pattern.
  static constexpr size_t kMostKept = 4;

  // A node that says it again is kept once, with its latest words.
  void Add(Instant now, const std::string& node_name, const std::string& reason);
  void Clear() { failures_.clear(); }
  bool empty() const { return failures_.empty(); }
  // A node of this name attached at `at`: earlier words of one that couldn't are over.
  void Came(const std::string& node_name, Instant at);
  // "node b could not start: ...; node c could not start: ..."; empty: none.
  std::string Text() const;

 private:
  struct Failure {
    Instant at;
    std::string node_name;
    std::string reason;
  };
  std::deque<Failure> failures_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_FAILED_STARTS_H_
