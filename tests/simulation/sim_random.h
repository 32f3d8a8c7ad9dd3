// The only source of chance in the simulation: a seed gives the same run on every machine (the
// standard library's distributions don't promise that). A value; not thread-safe.
#ifndef MUSTER_TESTS_SIMULATION_SIM_RANDOM_H_
#define MUSTER_TESTS_SIMULATION_SIM_RANDOM_H_

#include <cstdint>

#include "base/instant.h"

namespace muster::simulation {

class SimRandom {
 public:
  explicit SimRandom(uint64_t seed) : state_(seed * 0xda942042e4dd58b5u + 0x9e3779b97f4a7c15u) {}

  // splitmix64: a few lines, and any seed is a good one.
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // 0..count-1.
  int Below(int count) { return static_cast<int>(Next() % static_cast<uint64_t>(count)); }

  // least..most, both included.
  int Between(int least, int most) { return least + Below(most - least + 1); }

  Duration Between(Duration least, Duration most) {
    if (most <= least) return least;
    uint64_t span = static_cast<uint64_t>((most - least).count()) + 1;
    return least + Duration(static_cast<int64_t>(Next() % span));
  }

  // True in `percent` of 100 calls.
  bool Chance(int percent) { return Below(100) < percent; }

  // An id that no other call of this run gives.
  template <class Id>
  Id FreshId() {
    Id id;
    for (size_t i = 0; i < id.bytes.size(); i += 8) {
      uint64_t word = Next();
      for (size_t k = 0; k < 8 && i + k < id.bytes.size(); ++k) {
        id.bytes[i + k] = static_cast<uint8_t>(word >> (8 * k));
      }
    }
    return id;
  }

 private:
  uint64_t state_;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_SIM_RANDOM_H_
