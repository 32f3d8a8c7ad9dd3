#include "tests/load/tally.h"

#include <chrono>

namespace muster::load {
namespace {

constexpr int kMostDisturbances = 20;

// steady_clock is CLOCK_MONOTONIC, which all processes of a machine share.
long long Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

void Tally::Expect(int count) {
  base::MutexLock lock(mutex_);
  expected_ += count;
}

void Tally::Attached() {
  base::MutexLock lock(mutex_);
  if (++attached_ != expected_) return;
  std::fprintf(out_, "attached %d %lld\n", attached_, Now());
  std::fflush(out_);
}

void Tally::Stopped(uint64_t round) {
  base::MutexLock lock(mutex_);
  const int stopped = ++rounds_[round].stopped;
  if (stopped == 1) {
    std::fprintf(out_, "stopping %llu %lld\n", static_cast<unsigned long long>(round), Now());
    std::fflush(out_);
  }
  if (stopped != expected_) return;
  std::fprintf(out_, "stopped %llu %d %lld\n", static_cast<unsigned long long>(round), stopped,
               Now());
  std::fflush(out_);
}

void Tally::Started(uint64_t round, int group_rank, int world_size) {
  base::MutexLock lock(mutex_);
  Round& counts = rounds_[round];
  const auto rank = static_cast<uint64_t>(group_rank);
  counts.sum += rank;
  counts.squares += rank * rank;
  if (++counts.started != expected_) return;
  std::fprintf(out_, "started %llu %d %d %llu %llu %lld\n", static_cast<unsigned long long>(round),
               counts.started, world_size, static_cast<unsigned long long>(counts.sum),
               static_cast<unsigned long long>(counts.squares), Now());
  std::fflush(out_);
}

void Tally::Disturbed(const std::string& why) {
  base::MutexLock lock(mutex_);
  if (++disturbed_ > kMostDisturbances) return;
  std::fprintf(out_, "disturbed %s\n", why.c_str());
  std::fflush(out_);
}

}  // namespace muster::load
