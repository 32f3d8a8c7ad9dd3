// How the two ends of a new connection prove to each other that they belong to the same world.
// Pure: bytes in, bytes and a judgement out; the mesh (mesh.h) moves them.
//
//   connector                              acceptor
//     Opening (who I am, my nonce)   ->
//                                    <-    Opening
//     Proof                          ->    drops the connection unless it is right
//   drops it unless it is right      <-    Proof
//
// An Opening is {magic, version, world id, round, rank, world size, group, nonce}. A Proof is a
// keyed hash of the role and both openings: SipHash-2-4 twice, under the first and under the second
// half of the round's key, so 128 bits under a key of 256. A stranger learns no proof: the acceptor
// answers only a right one, and the role in the hash makes a proof worthless when sent back.
// SipHash rather than HMAC-SHA256: the SDK links nothing but the standard library, and a proof is
// only of use for guessing while one round lasts.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_HANDSHAKE_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/job_types.h"

namespace muster::cpu {

inline constexpr size_t kOpeningBytes = 80;
inline constexpr size_t kProofBytes = 16;
using OpeningBytes = std::array<uint8_t, kOpeningBytes>;
using ProofBytes = std::array<uint8_t, kProofBytes>;
using Nonce = std::array<uint8_t, 16>;

struct Opening {
  World world;
  int32_t rank = 0;
  int32_t world_size = 0;
  // Hash of the group's name.
  uint64_t group = 0;
  Nonce nonce{};

  friend bool operator==(const Opening&, const Opening&) = default;
};

enum class Role : uint8_t { kConnector = 1, kAcceptor = 2 };

OpeningBytes EncodeOpening(const Opening& opening);
// None: not ours, or of another version.
std::optional<Opening> DecodeOpening(const OpeningBytes& bytes);

// Why `theirs` can't be a peer of `ours`; empty if it can. Says nothing of the key.
std::string ObjectionTo(const Opening& theirs, const Opening& ours);

// What `prover` sends.
ProofBytes MakeProof(const RoundKey& key, Role prover, const OpeningBytes& connector,
                     const OpeningBytes& acceptor);
// Takes the same time whichever byte differs.
bool IsEqual(const ProofBytes& a, const ProofBytes& b);

uint64_t HashOfName(const std::string& name);

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_HANDSHAKE_H_
