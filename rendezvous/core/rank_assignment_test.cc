#include "rendezvous/core/rank_assignment.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

// A survivor of place `last`, or an arrival.
Candidate Survivor(int id, int last, std::optional<int> wanted = std::nullopt) {
  return {MemberId(id), 1, wanted, GroupRank(last), ""};
}
Candidate Arrival(int id, std::optional<int> wanted = std::nullopt) {
  return {MemberId(id), 1, wanted, std::nullopt, ""};
}
Candidate ArrivalAt(int id, const std::string& topology) {
  return {MemberId(id), 1, std::nullopt, std::nullopt, topology};
}

// "5 1 7 | 9": members by group rank, then spares.
std::string Places(const std::vector<Candidate>& candidates, int max_nodes) {
  const Assignment assignment = AssignRanks(candidates, max_nodes);
  std::string text;
  for (const Place& place : assignment.places) text += std::to_string(place.member.value) + " ";
  if (!assignment.spares.empty()) text += "|";
  for (MemberId spare : assignment.spares) text += " " + std::to_string(spare.value);
  return text;
}

TEST(RankAssignment, PlacesFollowTheTable) {
  struct Case {
    const char* rule;
    std::vector<Candidate> candidates;
    int max_nodes;
    std::string places;
  };
  const std::vector<Case> cases = {
      {"arrivals in the order they came", {Arrival(3), Arrival(1), Arrival(2)}, 4, "1 2 3 "},
      {"survivors keep their places", {Survivor(5, 1), Survivor(9, 0)}, 4, "9 5 "},
      {"without arrivals holes close up, in order",
       {Survivor(1, 0), Survivor(2, 2), Survivor(3, 3)},
       4,
       "1 2 3 "},
      {"an arrival fills the hole",
       {Survivor(1, 0), Survivor(2, 2), Survivor(3, 3), Arrival(7)},
       4,
       "1 7 2 3 "},
      {"fewer arrivals than holes: order holds",
       {Survivor(1, 0), Survivor(4, 4), Arrival(8)},
       5,
       "1 8 4 "},
      {"an arrival fills place 0", {Survivor(2, 1), Arrival(7)}, 2, "7 2 "},
      {"arrivals beyond the survivors", {Survivor(2, 0), Arrival(8), Arrival(7)}, 4, "2 7 8 "},
      {"those beyond MAX are spares", {Arrival(1), Arrival(2), Arrival(3)}, 2, "1 2 | 3"},
      {"survivors go before earlier arrivals",
       {Arrival(1), Survivor(5, 0), Survivor(6, 1)},
       2,
       "5 6 | 1"},
      {"a wanted place is given", {Arrival(1, 1), Arrival(2, 0)}, 2, "2 1 "},
      {"a survivor makes room for a wanted place",
       {Survivor(1, 0), Survivor(2, 1), Arrival(9, 0)},
       3,
       "9 1 2 "},
      {"of two that want one place the first gets it, the other the next",
       {Arrival(1, 1), Arrival(2, 1), Arrival(3)},
       3,
       "3 1 2 "},
      {"a place beyond the nodes that are there: the nearest",
       {Arrival(1, 7), Arrival(2)},
       4,
       "2 1 "},
      {"without node 1 those after it close up, in order",
       {Survivor(1, 0, 0), Survivor(2, 2, 2), Survivor(3, 3, 3)},
       4,
       "1 2 3 "},
      {"and make room again when it is back",
       {Survivor(1, 0, 0), Survivor(2, 1, 2), Survivor(3, 2, 3), Arrival(9, 1)},
       4,
       "1 9 2 3 "},
      {"node ranks far apart keep their order",
       {Arrival(1, 90), Arrival(2, 7), Arrival(3, 40)},
       4,
       "2 3 1 "},
      {"arrivals by topology, as people count",
       {ArrivalAt(1, "rack10"), ArrivalAt(2, "rack2"), ArrivalAt(3, "rack1")},
       4,
       "3 2 1 "},
      {"equal keys in the order they came", {ArrivalAt(2, "r1"), ArrivalAt(1, "r1")}, 4, "1 2 "},
      {"those without a key come last", {Arrival(1), ArrivalAt(2, "r1")}, 4, "2 1 "},
      {"a key never decides who is left out",
       {ArrivalAt(1, "r9"), ArrivalAt(2, "r8"), ArrivalAt(3, "r1")},
       2,
       "2 1 | 3"},
      {"survivors keep their places whatever the keys",
       {Survivor(1, 0), ArrivalAt(3, "r1"), Survivor(2, 1), ArrivalAt(4, "r0")},
       4,
       "1 2 4 3 "},
      {"nobody", {}, 4, ""},
  };
  for (const Case& c : cases) EXPECT_EQ(Places(c.candidates, c.max_nodes), c.places) << c.rule;
}

TEST(RankAssignment, FirstRanksAddUpTheWorkersBefore) {
  std::vector<Candidate> candidates = {Arrival(1), Arrival(2), Arrival(3)};
  candidates[0].worker_count = 2;
  candidates[1].worker_count = 5;
  candidates[2].worker_count = 1;
  const Assignment assignment = AssignRanks(candidates, 3);
  ASSERT_EQ(assignment.places.size(), 3u);
  EXPECT_EQ(assignment.places[0].first_rank, Rank(0));
  EXPECT_EQ(assignment.places[1].first_rank, Rank(2));
  EXPECT_EQ(assignment.places[2].first_rank, Rank(7));
  EXPECT_EQ(assignment.world_size, 8);
}

// The least number of survivors that must change their places, tried out: any choice of places that
// keeps their order.
int LeastMoves(const std::vector<int>& old_places, size_t next, int from, int count) {
  if (next == old_places.size()) return 0;
  int least = 1000;
  const int after = static_cast<int>(old_places.size() - next) - 1;
  for (int place = from; place + after < count; ++place) {
    const int moves =
        (place == old_places[next] ? 0 : 1) + LeastMoves(old_places, next + 1, place + 1, count);
    least = std::min(least, moves);
  }
  return least;
}

TEST(RankAssignment, OverLossesAndArrivalsRanksMoveAsLittleAsPossible) {
  std::mt19937 random(7);
  for (int job = 0; job < 60; ++job) {
    const int max_nodes = 1 + static_cast<int>(random() % 8);
    int arrived = 0;
    std::vector<Candidate> members;  // last_place as of the round before
    for (int round = 0; round < 25; ++round) {
      for (int loss = random() % 3; loss > 0 && members.size() > 1; --loss) {
        members.erase(members.begin() + random() % members.size());
      }
      for (int arrival = random() % 3; arrival > 0; --arrival) {
        members.push_back(
            ArrivalAt(++arrived, random() % 2 ? "r" + std::to_string(random() % 12) : ""));
      }
      if (members.empty()) continue;
      std::shuffle(members.begin(), members.end(), random);
      const Assignment assignment = AssignRanks(members, max_nodes);
      const auto count = std::min<size_t>(max_nodes, members.size());
      ASSERT_EQ(assignment.places.size(), count);
      ASSERT_EQ(assignment.places.size() + assignment.spares.size(), members.size());
      std::vector<int> old_places;
      int moves = 0;
      for (size_t i = 0; i < count; ++i) {
        const Place& place = assignment.places[i];
        ASSERT_EQ(place.group_rank, GroupRank(static_cast<int>(i)));
        ASSERT_EQ(place.first_rank, Rank(static_cast<int>(i)));
        auto member = std::find_if(members.begin(), members.end(),
                                   [&](const Candidate& c) { return c.member == place.member; });
        ASSERT_NE(member, members.end());
        if (member->last_place) {
          old_places.push_back(member->last_place->value);
          moves += member->last_place == place.group_rank ? 0 : 1;
        }
        member->last_place = place.group_rank;
      }
      ASSERT_TRUE(std::is_sorted(old_places.begin(), old_places.end())) << "order changed";
      ASSERT_EQ(moves, LeastMoves(old_places, 0, 0, static_cast<int>(count)));
    }
  }
}

TEST(RankAssignment, WithNodeRanksForAllTheOrderIsTheirs) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> ranks(16);
    for (int i = 0; i < 16; ++i) ranks[i] = i;
    std::shuffle(ranks.begin(), ranks.end(), random);
    std::vector<Candidate> candidates;
    const int count = 1 + static_cast<int>(random() % 16);
    candidates.reserve(count);
    for (int i = 0; i < count; ++i) candidates.push_back(Arrival(i + 1, ranks[i]));
    const Assignment assignment = AssignRanks(candidates, 16);
    int last = -1;
    for (const Place& place : assignment.places) {
      const int wanted = *candidates[place.member.value - 1].wanted_place;
      ASSERT_GT(wanted, last);
      ASSERT_LE(place.group_rank.value, wanted) << "never beyond what was asked for";
      last = wanted;
    }
    if (count == 16) {
      for (const Place& place : assignment.places) {
        ASSERT_EQ(place.group_rank.value, *candidates[place.member.value - 1].wanted_place);
      }
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
