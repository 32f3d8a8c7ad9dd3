// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of 64 bits for short messages. Written
// here because the SDK may link nothing but the standard library. Pure; thread-safe.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_SIPHASH_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_SIPHASH_H_

#include <cstdint>
#include <span>

namespace muster::cpu {

uint64_t SipHash24(std::span<const uint8_t, 16> key, std::span<const uint8_t> message);

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_SIPHASH_H_
