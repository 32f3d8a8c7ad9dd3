// Who has been silent for too long: a set of leases of one length, each counted from its last
// renewal. Renewing, dropping and asking for the next expiry take constant time, whatever the
// number of leases, since a renewal moves a lease to the end of one list. A value; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_LEASE_TABLE_H_
#define MUSTER_RENDEZVOUS_CORE_LEASE_TABLE_H_

#include <list>
#include <unordered_map>
#include <vector>

#include "base/instant.h"
#include "rendezvous/core/member.h"

namespace muster::rendezvous {

class LeaseTable {
 public:
  explicit LeaseTable(Duration length) : length_(length) {}

  // Starts or renews the lease. `now` never goes backwards.
  void Renew(MemberId member, Instant now);
  // Forgets it; no effect if there is none.
  void Drop(MemberId member);
  // Every lease counts from `now` at least: the clock's owner stood still, so silence proves
  // nothing.
  void RestartAll(Instant now) { restarted_ = now; }
  // Takes out those that are over: a lease ends at renewal + length. Longest silent first.
  std::vector<MemberId> TakeExpired(Instant now);
  // When the next one ends; Never() if there is none.
  Instant NextExpiry() const;

 private:
  struct Entry {
    MemberId member;
    Instant renewed;
  };

  Instant EndOf(const Entry& entry) const {
    return (entry.renewed < restarted_ ? restarted_ : entry.renewed) + length_;
  }

  Duration length_;
  Instant restarted_;
  // In order of renewal, so the first one ends first.
  std::list<Entry> entries_;
  std::unordered_map<MemberId, std::list<Entry>::iterator> places_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_LEASE_TABLE_H_
