// The bytes between two ranks after the handshake: frames of 8 bytes {u8 kind, u8 lane, u16 zero,
// u32 length} + payload, little-endian.
//
//   kCall     which collective the sender has started (Call, below); first of each operation
//   kData     bytes of the call before it; a lane is one ordered stream of bytes of a call
//   kFailure  the sender's group has failed: code, culprit, message
//   kGoodbye  the sender leaves in order; nothing follows
//
// Values and pure functions; thread-safe.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_WIRE_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_WIRE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/status.h"

namespace muster::cpu {

static_assert(std::endian::native == std::endian::little,
              "element bytes travel as they are in memory, little-endian");

enum class FrameKind : uint8_t { kCall = 1, kData = 2, kFailure = 3, kGoodbye = 4 };

struct FrameHeader {
  FrameKind kind = FrameKind::kGoodbye;
  uint8_t lane = 0;
  uint32_t length = 0;
};

inline constexpr size_t kFrameHeaderBytes = 8;
// Payload of a data frame: large enough to make a system call cheap, small enough that what was
// received is still in the second cache level when it is reduced. A multiple of every element size.
inline constexpr size_t kSegmentBytes = 128u << 10;
inline constexpr size_t kMaxFailureBytes = 4096;

enum class CallKind : uint8_t {
  kBarrier = 1,
  kBroadcast = 2,
  kAllReduce = 3,
  kRingAllReduce = 4,
  kAllGather = 5,
  kReduceScatter = 6,
  kSendReceive = 7,
};

// The fingerprint of an operation: equal on all ranks that take part, or the ranks disagree.
struct Call {
  CallKind kind = CallKind::kBarrier;
  // Counts the group's collectives from 1; of send and receive, those from one rank to another.
  uint64_t sequence = 0;
  DataType type = DataType::kU8;
  // kSum for calls that don't reduce.
  ReduceOp op = ReduceOp::kSum;
  // Of a broadcast the root, of send and receive the receiver, else -1.
  int32_t root = -1;
  uint64_t count = 0;

  friend bool operator==(const Call&, const Call&) = default;
};
inline constexpr size_t kCallBytes = 24;

// "all_reduce #5 (sum, f32, 1000 elements)"
std::string Describe(const Call& call);

std::array<std::byte, kFrameHeaderBytes> EncodeHeader(const FrameHeader& header);
// None: no frame starts like that (unknown kind, or a length that the kind can't have).
std::optional<FrameHeader> DecodeHeader(std::span<const std::byte, kFrameHeaderBytes> bytes);

std::array<std::byte, kCallBytes> EncodeCall(const Call& call);
// Numbers that no version of ours sends decode too: they are different from any call of ours.
Call DecodeCall(std::span<const std::byte, kCallBytes> bytes);

// The payload of a failure frame; a message that is too long is cut.
std::string EncodeFailure(const Status& status);
// A status that isn't OK, whatever the bytes.
Status DecodeFailure(std::string_view bytes);

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_WIRE_H_
