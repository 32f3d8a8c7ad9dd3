#include "rendezvous/core/rank_assignment.h"

#include <algorithm>
#include <cstddef>

#include "base/planted_fault.h"
#include "rendezvous/core/natural_order.h"

namespace muster::rendezvous {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// Survivors in the order of their last places, then arrivals in the order they came.
bool ComesBefore(const Candidate& a, const Candidate& b) {
  if (a.last_place.has_value() != b.last_place.has_value()) return a.last_place.has_value();
  if (a.last_place != b.last_place) return a.last_place < b.last_place;
  return a.member < b.member;
}

// The same, but arrivals by where they are.
bool IsPlacedBefore(const Candidate& a, const Candidate& b) {
  if (a.last_place || b.last_place) return ComesBefore(a, b);
  if (a.topology.empty() != b.topology.empty()) return b.topology.empty();
  const auto order = NaturalOrder(a.topology, b.topology);
  return order == 0 ? ComesBefore(a, b) : order < 0;
}

// Places that are still free, and who has got one.
class Seating {
 public:
  explicit Seating(size_t count) : chosen_(count, kNone), taken_(count, false) {}

  struct Wish {
    size_t participant = 0;
    size_t place = 0;
  };

  // Each gets its place or, where that is taken or beyond those left for it and the ones after it,
  // the nearest one that keeps their order. `wishes` is sorted by place.
  void Seat(const std::vector<Wish>& wishes) {
    std::vector<size_t> free;
    for (size_t place = 0; place < taken_.size(); ++place) {
      if (!taken_[place]) free.push_back(place);
    }
    size_t next = 0;
    for (size_t i = 0; i < wishes.size(); ++i) {
      const size_t last_fitting = free.size() - wishes.size() + i;
      const size_t same =
          std::lower_bound(free.begin(), free.end(), wishes[i].place) - free.begin();
      const size_t index = std::min(std::max(next, same), last_fitting);
      Take(wishes[i].participant, free[index]);
      next = index + 1;
    }
  }

  void FillHoles() {
    size_t hole = 0;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      if (chosen_[i] != kNone) continue;
      while (taken_[hole]) ++hole;
      Take(i, hole);
    }
  }

  bool IsSeated(size_t participant) const { return chosen_[participant] != kNone; }
  const std::vector<size_t>& chosen() const { return chosen_; }

 private:
  void Take(size_t participant, size_t place) {
    chosen_[participant] = place;
    taken_[place] = true;
  }

  // By participant.
  std::vector<size_t> chosen_;
  std::vector<bool> taken_;
};

// The place of each participant (sorted by IsPlacedBefore), as an index.
std::vector<size_t> ChoosePlaces(const std::vector<Candidate>& participants) {
  Seating seating(participants.size());
  std::vector<Seating::Wish> wishes;
  for (size_t i = 0; i < participants.size(); ++i) {
    const std::optional<int>& wanted = participants[i].wanted_place;
    if (wanted && *wanted >= 0) wishes.push_back({i, static_cast<size_t>(*wanted)});
  }
  std::stable_sort(wishes.begin(), wishes.end(),
                   [](const auto& a, const auto& b) { return a.place < b.place; });
  seating.Seat(wishes);
  wishes.clear();
  for (size_t i = 0; i < participants.size(); ++i) {
    if (seating.IsSeated(i) || !participants[i].last_place) continue;
    wishes.push_back({i, static_cast<size_t>(participants[i].last_place->value)});
  }
  seating.Seat(wishes);
  seating.FillHoles();
  return seating.chosen();
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
  std::sort(candidates.begin(), candidates.end(), IsPlacedBefore);
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
