// Counts what the members of a crowd hear, and says on one stream when all of them have heard it,
// in one line each with the instant at which the last one did (CLOCK_MONOTONIC, nanoseconds):
//   attached COUNT AT
//   stopping ROUND AT                            the first one heard it
//   stopped ROUND COUNT AT
//   started ROUND COUNT WORLD SUM SQUARES AT     of the members' group ranks, which tell whether
//                                                every place was given once
//   disturbed TEXT                               a member lost its contact; each, up to a bound
// Thread-safe. `out` must outlive it.
#ifndef MUSTER_TESTS_LOAD_TALLY_H_
#define MUSTER_TESTS_LOAD_TALLY_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "base/mutex.h"

namespace muster::load {

class Tally {
 public:
  explicit Tally(std::FILE* out) : out_(out) {}
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // So many more members are about to start; from now on "all" includes them.
  void Expect(int count);
  void Attached();
  void Stopped(uint64_t round);
  void Started(uint64_t round, int group_rank, int world_size);
  void Disturbed(const std::string& why);

 private:
  struct Round {
    int stopped = 0;
    int started = 0;
    uint64_t sum = 0;
    uint64_t squares = 0;
  };

  std::FILE* const out_;
  base::Mutex mutex_;
  int expected_ MUSTER_GUARDED_BY(mutex_) = 0;
  int attached_ MUSTER_GUARDED_BY(mutex_) = 0;
  int disturbed_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Round> rounds_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::load

#endif  // MUSTER_TESTS_LOAD_TALLY_H_
