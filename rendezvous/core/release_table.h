// What nodes that were let go were told, should one have missed it and come back; and which of them
// still hosts this rendezvous. The oldest is forgotten for the newest one too many. A value; not
// thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_RELEASE_TABLE_H_
#define MUSTER_RENDEZVOUS_CORE_RELEASE_TABLE_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>

#include "base/ids.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::rendezvous {

class ReleaseTable {
 public:
  // The more, the longer a node may stay away before it asks.
  static constexpr size_t kMostKept = 1024;

  // Its agent goes, whatever it was told: is it the host's?
  void NoteHost(const Attach& attach);
  // Returns what is kept; a later word to the same agent replaces the one before.
  const Verdict& Keep(const Attach& attach, Verdict verdict);
  // As a map's.
  auto find(const Incarnation& agent) const { return verdicts_.find(agent); }
  auto end() const { return verdicts_.end(); }
  // The node whose process hosts this rendezvous, once its agent was let go.
  const std::optional<Attach>& host() const { return host_; }

 private:
  std::map<Incarnation, Verdict> verdicts_;
  // Their keys, oldest first.
  std::deque<Incarnation> order_;
  std::optional<Attach> host_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_RELEASE_TABLE_H_
