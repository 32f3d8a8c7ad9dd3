// Which node gets which place in a new round, and which first rank follows from it: nodes that ask
// for a place get it, survivors of the last round keep their order, holes are filled by arrivals in
// the order they came, and those beyond MAX are left out as spares. Pure; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_RANK_ASSIGNMENT_H_
#define MUSTER_RENDEZVOUS_CORE_RANK_ASSIGNMENT_H_

#include <optional>
#include <vector>

#include "base/ids.h"
#include "rendezvous/core/member.h"

namespace muster::rendezvous {

// One node that could take part.
struct Candidate {
  MemberId member;
  int worker_count = 1;
  // --node-rank. Honoured if it is below the number of nodes and nobody before asked for it; of two
  // that ask for one place a survivor is before an arrival, then the earlier before the later.
  std::optional<int> wanted_place;
  // Its place in the last round; none for an arrival.
  std::optional<GroupRank> last_place;
};

struct Place {
  MemberId member;
  GroupRank group_rank;
  Rank first_rank;
};

struct Assignment {
  // In order of group rank; these are 0..size-1 without a hole.
  std::vector<Place> places;
  int world_size = 0;
  // Candidates for whom there was no place, in order of arrival.
  std::vector<MemberId> spares;
};

// `candidates` in any order; members are distinct. At most `max_nodes` (> 0) get a place.
Assignment AssignRanks(std::vector<Candidate> candidates, int max_nodes);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_RANK_ASSIGNMENT_H_
