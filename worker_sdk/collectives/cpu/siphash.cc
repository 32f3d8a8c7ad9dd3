#include "worker_sdk/collectives/cpu/siphash.h"

#include <bit>

namespace muster::cpu {
namespace {

uint64_t LoadLittleEndian(std::span<const uint8_t> bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) word |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return word;
}

struct State {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Absorb(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
};

}  // namespace

uint64_t SipHash24(std::span<const uint8_t, 16> key, std::span<const uint8_t> message) {
  uint64_t k0 = LoadLittleEndian(key.first(8)), k1 = LoadLittleEndian(key.last(8));
  // The initial words spell "somepseudorandomlygeneratedbytes".
  State state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
              k1 ^ 0x7465646279746573};
  uint64_t last = static_cast<uint64_t>(message.size()) << 56;
  while (message.size() >= 8) {
    state.Absorb(LoadLittleEndian(message.first(8)));
    message = message.subspan(8);
  }
  state.Absorb(last | LoadLittleEndian(message));
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace muster::cpu
