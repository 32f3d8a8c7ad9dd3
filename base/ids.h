// Strong types for the names and numbers that travel between processes, so that a rank can't be
// passed where a round is meant. Plain values, immutable, safe to copy between threads.
#ifndef MUSTER_BASE_IDS_H_
#define MUSTER_BASE_IDS_H_

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace muster {

// An integer of one meaning. `Tag` is an empty struct that is never defined.
template <class Tag, class Value>
struct StrongInt {
  Value value = 0;

  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Value v) : value(v) {}
  friend constexpr auto operator<=>(const StrongInt&, const StrongInt&) = default;
};

// A round: one agreed membership of a job. 0 means "none yet"; the first round is 1; only grows.
using RoundId = StrongInt<struct RoundTag, uint64_t>;
// A worker's place in the world, 0..world_size-1.
using Rank = StrongInt<struct RankTag, int32_t>;
// A worker's place on its node, 0..worker_count-1.
using LocalRank = StrongInt<struct LocalRankTag, int32_t>;
// A node's place in the round, 0..group_world_size-1.
using GroupRank = StrongInt<struct GroupRankTag, int32_t>;
// One session (gRPC stream) of the rendezvous; local to one life of the rendezvous.
using SessionId = StrongInt<struct SessionTag, uint64_t>;

// `N` bytes of one meaning that nobody can guess; all zero means "none".
template <class Tag, size_t N>
struct RandomId {
  std::array<uint8_t, N> bytes{};

  friend constexpr auto operator<=>(const RandomId&, const RandomId&) = default;
  bool IsNone() const { return bytes == std::array<uint8_t, N>{}; }

  // Lower-case hexadecimal digits, 2 for each byte.
  std::string ToHex() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    hex.reserve(2 * N);
    for (uint8_t b : bytes) {
      hex.push_back(kDigits[b >> 4]);
      hex.push_back(kDigits[b & 15]);
    }
    return hex;
  }

  // The reverse of ToHex(). None if `hex` isn't exactly 2*N hexadecimal digits.
  static RandomId FromHex(std::string_view hex) {
    auto digit = [](char c) -> int {
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      if (c >= 'A' && c <= 'F') return c - 'A' + 10;
      return -1;
    };
    RandomId id;
    if (hex.size() != 2 * N) return RandomId{};
    for (size_t i = 0; i < N; ++i) {
      int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
      if (high < 0 || low < 0) return RandomId{};
      id.bytes[i] = static_cast<uint8_t>(high << 4 | low);
    }
    return id;
  }
};

// One life of an agent. A node that comes back is another incarnation, whatever its name.
using Incarnation = RandomId<struct IncarnationTag, 16>;
// One world: the membership formed in one round. Two rounds of equal number (a rendezvous that came
// back empty) differ here.
using WorldId = RandomId<struct WorldTag, 16>;
// The secret that a round's workers prove to each other on every data-plane connection.
using RoundKey = RandomId<struct RoundKeyTag, 32>;

}  // namespace muster

template <class Tag, class Value>
struct std::hash<muster::StrongInt<Tag, Value>> {
  size_t operator()(muster::StrongInt<Tag, Value> id) const { return std::hash<Value>()(id.value); }
};

template <class Tag, size_t N>
struct std::hash<muster::RandomId<Tag, N>> {
  size_t operator()(const muster::RandomId<Tag, N>& id) const {
    return std::hash<std::string_view>()(
        std::string_view(reinterpret_cast<const char*>(id.bytes.data()), N));
  }
};

#endif  // MUSTER_BASE_IDS_H_
