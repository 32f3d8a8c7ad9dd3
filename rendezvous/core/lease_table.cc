#include "rendezvous/core/lease_table.h"

#include "base/planted_fault.h"

namespace muster::rendezvous {

void LeaseTable::Renew(MemberId member, Instant now) {
  auto place = places_.find(member);
  if (place == places_.end()) {
    entries_.push_back({member, now});
    places_[member] = std::prev(entries_.end());
    return;
  }
  place->second->renewed = now;
  entries_.splice(entries_.end(), entries_, place->second);
}

void LeaseTable::Drop(MemberId member) {
  auto place = places_.find(member);
  if (place == places_.end()) return;
  entries_.erase(place->second);
  places_.erase(place);
}

std::vector<MemberId> LeaseTable::TakeExpired(Instant now) {
  std::vector<MemberId> expired;
  while (!entries_.empty()) {
    const Instant end = EndOf(entries_.front());
    if (!MUSTER_PLANTED(kLeaseComparedBackwards, now < end, end <= now)) break;
    expired.push_back(entries_.front().member);
    Drop(expired.back());
  }
  return expired;
}

Instant LeaseTable::NextExpiry() const {
  return entries_.empty() ? Instant::Never() : EndOf(entries_.front());
}

}  // namespace muster::rendezvous
