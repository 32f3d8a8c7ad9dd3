#include "rendezvous/core/rank_assignment.h"

#include <algorithm>
#include <cstddef>

#include "base/planted_fault.h"

namespace muster::rendezvous {
namespace {

// Survivors in the order of their last places, then arrivals in the order they came.
bool ComesBefore(const Candidate& a, const Candidate& b) {
  if (a.last_place.has_value() != b.last_place.has_value()) return a.last_place.has_value();
  if (a.last_place != b.last_place) return a.last_place < b.last_place;
  return a.member < b.member;
}

// The place of each participant (sorted by ComesBefore), as an index.
std::vector<size_t> ChoosePlaces(const std::vector<Candidate>& participants) {
  const size_t count = participants.size();
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> chosen(count, kNone);
  std::vector<bool> taken(count, false);
  for (size_t i = 0; i < count; ++i) {
    const std::optional<int>& wanted = participants[i].wanted_place;
    if (!wanted || *wanted < 0 || static_cast<size_t>(*wanted) >= count || taken[*wanted]) continue;
    chosen[i] = *wanted;
    taken[*wanted] = true;
  }
  std::vector<size_t> free;
  for (size_t place = 0; place < count; ++place) {
    if (!taken[place]) free.push_back(place);
  }
  std::vector<size_t> survivors;
  for (size_t i = 0; i < count; ++i) {
    if (chosen[i] == kNone && participants[i].last_place) survivors.push_back(i);
  }
  // Each survivor takes its old place or, where that is beyond those left for it and the survivors
  // after it, the last one that keeps the order.
  size_t next = 0;
  for (size_t s = 0; s < survivors.size(); ++s) {
    const size_t old = participants[survivors[s]].last_place->value;
    const size_t last_fitting = free.size() - survivors.size() + s;
    const size_t same = std::lower_bound(free.begin(), free.end(), old) - free.begin();
    const size_t index = std::min(std::max(next, same), last_fitting);
    chosen[survivors[s]] = free[index];
    taken[free[index]] = true;
    next = index + 1;
  }
  size_t hole = 0;
  for (size_t i = 0; i < count; ++i) {
    if (chosen[i] != kNone) continue;
    while (taken[hole]) ++hole;
    chosen[i] = hole;
    taken[hole] = true;
  }
  return chosen;
}

// The planted fault: every survivor keeps its number, whatever was lost below it.
[[maybe_unused]] std::vector<size_t> KeepOldPlaces(const std::vector<Candidate>& participants) {
  std::vector<size_t> chosen;
  size_t next = 0;
  for (const Candidate& candidate : participants) {
    if (candidate.last_place) next = candidate.last_place->value;
    chosen.push_back(next++);
  }
  return chosen;
}

}  // namespace

Assignment AssignRanks(std::vector<Candidate> candidates, int max_nodes) {
  std::sort(candidates.begin(), candidates.end(), ComesBefore);
  Assignment assignment;
  const size_t count = std::min(candidates.size(), static_cast<size_t>(max_nodes));
  for (size_t i = count; i < candidates.size(); ++i) {
    assignment.spares.push_back(candidates[i].member);
  }
  candidates.resize(count);
  const std::vector<size_t> chosen =
      MUSTER_PLANTED(kRanksHaveHoles, KeepOldPlaces(candidates), ChoosePlaces(candidates));
  std::vector<size_t> by_place(count);
  for (size_t i = 0; i < count; ++i) by_place[i] = i;
  std::sort(by_place.begin(), by_place.end(),
            [&](size_t a, size_t b) { return chosen[a] < chosen[b]; });
  for (size_t i : by_place) {
    assignment.places.push_back({candidates[i].member, GroupRank(static_cast<int>(chosen[i])),
                                 Rank(assignment.world_size)});
    assignment.world_size += candidates[i].worker_count;
  }
  return assignment;
}

}  // namespace muster::rendezvous
