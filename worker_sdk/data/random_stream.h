// Random numbers that are the same on every machine, compiler and standard library, so that a
// shuffle or an initialisation can be repeated: xoshiro256++ (Blackman, Vigna), seeded by
// SplitMix64. Not for secrets. A value: copying it copies the sequence from here on. Its whole
// state is 32 bytes, which go into a checkpoint.
#ifndef MUSTER_WORKER_SDK_DATA_RANDOM_STREAM_H_
#define MUSTER_WORKER_SDK_DATA_RANDOM_STREAM_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

class RandomStream {
 public:
  // Streams of different (seed, stream) are independent: `stream` is a rank or an epoch.
  explicit RandomStream(uint64_t seed, uint64_t stream = 0);

  // 64 random bits.
  uint64_t Next() {
    const uint64_t result = Rotate(state_[0] + state_[3], 23) + state_[0];
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }
  // 0..bound-1, each equally likely. `bound` must not be 0.
  uint64_t Below(uint64_t bound);
  // In [0, 1), a multiple of 2^-24.
  float Uniform() { return static_cast<float>(Next() >> 40) * 0x1p-24F; }

  // The state as bytes, and back; false (and no change) if `bytes` isn't such a state.
  std::string Save() const;
  bool Restore(std::string_view bytes);

  friend bool operator==(const RandomStream&, const RandomStream&) = default;

 private:
  static uint64_t Rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  std::array<uint64_t, 4> state_;
};

// 0..count-1 in an order that (seed, stream) decides: Fisher-Yates from the end, one Below() each.
// Not std::shuffle, whose result differs from library to library.
std::vector<uint64_t> RandomPermutation(uint64_t count, uint64_t seed, uint64_t stream);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DATA_RANDOM_STREAM_H_
