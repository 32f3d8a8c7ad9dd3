#include "worker_sdk/collectives/cpu/handshake.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "worker_sdk/collectives/cpu/siphash.h"

namespace muster::cpu {
namespace {

// The last byte is the version.
constexpr std::array<uint8_t, 8> kMagic = {'m', 'u', 's', 't', 'e', 'r', 'D', 1};

// Offsets in an opening.
constexpr size_t kWorldAt = 8, kRoundAt = 24, kRankAt = 32, kSizeAt = 36, kGroupAt = 40,
                 kNonceAt = 48, kZeroAt = 64;

void PutLittleEndian(uint8_t* at, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

uint64_t TakeLittleEndian(const uint8_t* at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(at[i]) << (8 * i);
  return value;
}

}  // namespace

OpeningBytes EncodeOpening(const Opening& opening) {
  OpeningBytes bytes{};
  std::ranges::copy(kMagic, bytes.begin());
  std::ranges::copy(opening.world.id.bytes, bytes.begin() + kWorldAt);
  PutLittleEndian(&bytes[kRoundAt], opening.world.round.value, 8);
  PutLittleEndian(&bytes[kRankAt], static_cast<uint32_t>(opening.rank), 4);
  PutLittleEndian(&bytes[kSizeAt], static_cast<uint32_t>(opening.world_size), 4);
  PutLittleEndian(&bytes[kGroupAt], opening.group, 8);
  std::ranges::copy(opening.nonce, bytes.begin() + kNonceAt);
  return bytes;
}

std::optional<Opening> DecodeOpening(const OpeningBytes& bytes) {
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) return std::nullopt;
  if (std::any_of(bytes.begin() + kZeroAt, bytes.end(), [](uint8_t b) { return b != 0; })) {
    return std::nullopt;
  }
  Opening opening;
  std::copy_n(bytes.begin() + kWorldAt, opening.world.id.bytes.size(),
              opening.world.id.bytes.begin());
  opening.world.round = RoundId(TakeLittleEndian(&bytes[kRoundAt], 8));
  opening.rank = static_cast<int32_t>(TakeLittleEndian(&bytes[kRankAt], 4));
  opening.world_size = static_cast<int32_t>(TakeLittleEndian(&bytes[kSizeAt], 4));
  opening.group = TakeLittleEndian(&bytes[kGroupAt], 8);
  std::copy_n(bytes.begin() + kNonceAt, opening.nonce.size(), opening.nonce.begin());
  return opening;
}

std::string ObjectionTo(const Opening& theirs, const Opening& ours) {
  if (theirs.world.id != ours.world.id) return "another world";
  if (theirs.world.round != ours.world.round) {
    return "round " + std::to_string(theirs.world.round.value) + " instead of " +
           std::to_string(ours.world.round.value);
  }
  if (theirs.world_size != ours.world_size) return "another world size";
  if (theirs.group != ours.group) return "another group";
  if (theirs.rank < 0 || theirs.rank >= ours.world_size || theirs.rank == ours.rank) {
    return "rank " + std::to_string(theirs.rank);
  }
  return "";
}

ProofBytes MakeProof(const RoundKey& key, Role prover, const OpeningBytes& connector,
                     const OpeningBytes& acceptor) {
  std::array<uint8_t, 1 + 2 * kOpeningBytes> message{};
  message[0] = static_cast<uint8_t>(prover);
  std::ranges::copy(connector, message.begin() + 1);
  std::ranges::copy(acceptor, message.begin() + 1 + kOpeningBytes);
  std::span<const uint8_t, 32> secret(key.bytes);
  ProofBytes proof{};
  PutLittleEndian(&proof[0], SipHash24(secret.first<16>(), message), 8);
  PutLittleEndian(&proof[8], SipHash24(secret.last<16>(), message), 8);
  return proof;
}

bool IsEqual(const ProofBytes& a, const ProofBytes& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = static_cast<uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

uint64_t HashOfName(const std::string& name) {
  std::vector<uint8_t> bytes(name.begin(), name.end());
  constexpr std::array<uint8_t, 16> kNoKey{};
  return SipHash24(kNoKey, bytes);
}

}  // namespace muster::cpu
