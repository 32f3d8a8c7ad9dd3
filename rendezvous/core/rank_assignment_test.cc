#include "rendezvous/core/rank_assignment.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

// A survivor of place `last`, or an arrival.
Candidate Survivor(int id, int last) { return {MemberId(id), 1, std::nullopt, GroupRank(last)}; }
Candidate Arrival(int id, std::optional<int> wanted = std::nullopt) {
  return {MemberId(id), 1, wanted, std::nullopt};
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
      {"of two that want one place the first gets it",
       {Arrival(1, 1), Arrival(2, 1), Arrival(3)},
       3,
       "2 1 3 "},
      {"a wanted place that isn't there is ignored", {Arrival(1, 7), Arrival(2, -1)}, 4, "1 2 "},
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

TEST(RankAssignment, WhateverComesRanksHaveNoHoleAndSurvivorsKeepTheirOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> old_places(12);
    for (int i = 0; i < 12; ++i) old_places[i] = i;
    std::shuffle(old_places.begin(), old_places.end(), random);
    std::vector<Candidate> candidates;
    const int survivors = static_cast<int>(random() % 8);
    const int arrivals = static_cast<int>(random() % 5);
    for (int i = 0; i < survivors; ++i) candidates.push_back(Survivor(100 + i, old_places[i]));
    for (int i = 0; i < arrivals; ++i) candidates.push_back(Arrival(i + 1));
    std::shuffle(candidates.begin(), candidates.end(), random);
    const int max_nodes = 1 + static_cast<int>(random() % 12);
    const Assignment assignment = AssignRanks(candidates, max_nodes);
    ASSERT_EQ(assignment.places.size(), std::min<size_t>(max_nodes, candidates.size()));
    ASSERT_EQ(assignment.places.size() + assignment.spares.size(), candidates.size());
    int last = -1;
    for (size_t i = 0; i < assignment.places.size(); ++i) {
      ASSERT_EQ(assignment.places[i].group_rank, GroupRank(static_cast<int>(i)));
      ASSERT_EQ(assignment.places[i].first_rank, Rank(static_cast<int>(i)));
      for (const Candidate& candidate : candidates) {
        if (candidate.member != assignment.places[i].member || !candidate.last_place) continue;
        ASSERT_GT(candidate.last_place->value, last) << "survivors changed their order";
        last = candidate.last_place->value;
      }
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
