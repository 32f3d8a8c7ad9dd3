// Which node gets which place in a new round, and which first rank follows from it.
// - Survivors of the last round come before arrivals, and those who came first before others; who
// is
//   beyond MAX is left out as a spare.
// - Nodes with a --node-rank get that place. Where fewer nodes are there than it takes, they keep
//   their order and are as near to it as they can be.
// - The other survivors keep their order, and their places where they can.
// - Arrivals fill the holes, by --topology-key where they have one, else in the order they came.
// Pure; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_RANK_ASSIGNMENT_H_
#define MUSTER_RENDEZVOUS_CORE_RANK_ASSIGNMENT_H_

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "rendezvous/core/member.h"

namespace muster::rendezvous {

// One node that could take part.
struct Candidate {
  MemberId member;
  int worker_count = 1;
  // --node-rank, at least 0. Of two that ask for one place the earlier gets it, the other the next.
  std::optional<int> wanted_place;
  // Its place in the last round; none for an arrival.
  std::optional<GroupRank> last_place;
  // Natural order; arrivals without one come last.
  std::string topology;
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
