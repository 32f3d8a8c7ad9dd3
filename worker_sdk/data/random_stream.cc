#include "worker_sdk/data/random_stream.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

uint64_t SplitMix(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

RandomStream::RandomStream(uint64_t seed, uint64_t stream) {
  // Both words are mixed before they meet, so that (1, 2) and (2, 1) differ.
  uint64_t mixer = SplitMix(seed);
  mixer ^= stream;
  mixer = SplitMix(mixer);
  for (uint64_t& word : state_) word = SplitMix(mixer);
}

uint64_t RandomStream::Below(uint64_t bound) {
  MUSTER_CHECK(bound > 0);
  // The values below this threshold would make small results more likely.
  const uint64_t threshold = -bound % bound;
  uint64_t value = Next();
  while (value < threshold) value = Next();
  return value % bound;
}

std::string RandomStream::Save() const {
  std::string bytes;
  for (uint64_t word : state_) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(word >> (8 * i) & 0xff));
  }
  return bytes;
}

bool RandomStream::Restore(std::string_view bytes) {
  if (bytes.size() != 8 * state_.size()) return false;
  std::array<uint64_t, 4> state{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    state[i / 8] |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * (i % 8));
  }
  // All zero is the one state that xoshiro never leaves.
  if (state == std::array<uint64_t, 4>{}) return false;
  state_ = state;
  return true;
}

std::vector<uint64_t> RandomPermutation(uint64_t count, uint64_t seed, uint64_t stream) {
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), uint64_t{0});
  RandomStream random(seed, stream);
  for (uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

}  // namespace muster
