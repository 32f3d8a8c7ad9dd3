#include "worker_sdk/collectives/cpu/wire.h"

#include <cstring>
#include <string_view>

namespace muster::cpu {
namespace {

template <class T>
void Put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

template <class T>
T Take(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

const char* CallKindName(CallKind kind) {
  switch (kind) {
    case CallKind::kBarrier:
      return "barrier";
    case CallKind::kBroadcast:
      return "broadcast";
    case CallKind::kAllReduce:
      return "all_reduce";
    case CallKind::kRingAllReduce:
      return "all_reduce by ring";
    case CallKind::kAllGather:
      return "all_gather";
    case CallKind::kReduceScatter:
      return "reduce_scatter";
    case CallKind::kSendReceive:
      return "send/receive";
  }
  return "unknown call";
}

// Code and culprit, before the message.
constexpr size_t kFailurePrefix = 8;

}  // namespace

std::string Describe(const Call& call) {
  std::string text = CallKindName(call.kind);
  text += " #" + std::to_string(call.sequence);
  if (call.kind == CallKind::kBarrier) return text;
  text += " (";
  if (call.kind == CallKind::kAllReduce || call.kind == CallKind::kRingAllReduce ||
      call.kind == CallKind::kReduceScatter) {
    text += std::string(ReduceOpName(call.op)) + ", ";
  }
  text += std::string(DataTypeName(call.type)) + ", " + std::to_string(call.count) + " elements";
  if (call.kind == CallKind::kBroadcast) text += ", root " + std::to_string(call.root);
  if (call.kind == CallKind::kSendReceive) text += ", to rank " + std::to_string(call.root);
  return text + ")";
}

std::array<std::byte, kFrameHeaderBytes> EncodeHeader(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  Put(&bytes[0], header.kind);
  Put(&bytes[1], header.lane);
  Put(&bytes[4], header.length);
  return bytes;
}

std::optional<FrameHeader> DecodeHeader(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  FrameHeader header{Take<FrameKind>(&bytes[0]), Take<uint8_t>(&bytes[1]),
                     Take<uint32_t>(&bytes[4])};
  bool fits = false;
  switch (header.kind) {
    case FrameKind::kCall:
      fits = header.length == kCallBytes;
      break;
    case FrameKind::kData:
      fits = header.length > 0 && header.length <= kSegmentBytes;
      break;
    case FrameKind::kFailure:
      fits = header.length >= kFailurePrefix && header.length <= kMaxFailureBytes;
      break;
    case FrameKind::kGoodbye:
      fits = header.length == 0;
      break;
  }
  if (!fits || Take<uint16_t>(&bytes[2]) != 0) return std::nullopt;
  return header;
}

std::array<std::byte, kCallBytes> EncodeCall(const Call& call) {
  std::array<std::byte, kCallBytes> bytes{};
  Put(&bytes[0], call.kind);
  Put(&bytes[1], call.type);
  Put(&bytes[2], call.op);
  Put(&bytes[4], call.root);
  Put(&bytes[8], call.sequence);
  Put(&bytes[16], call.count);
  return bytes;
}

Call DecodeCall(std::span<const std::byte, kCallBytes> bytes) {
  Call call;
  call.kind = Take<CallKind>(&bytes[0]);
  call.type = Take<DataType>(&bytes[1]);
  call.op = Take<ReduceOp>(&bytes[2]);
  call.root = Take<int32_t>(&bytes[4]);
  call.sequence = Take<uint64_t>(&bytes[8]);
  call.count = Take<uint64_t>(&bytes[16]);
  return call;
}

std::string EncodeFailure(const Status& status) {
  std::string bytes(kFailurePrefix, '\0');
  auto code = static_cast<int32_t>(status.code());
  int32_t rank = status.lost_rank();
  std::memcpy(&bytes[0], &code, sizeof(code));
  std::memcpy(&bytes[4], &rank, sizeof(rank));
  bytes += status.message().substr(0, kMaxFailureBytes - kFailurePrefix);
  return bytes;
}

Status DecodeFailure(std::string_view bytes) {
  if (bytes.size() < kFailurePrefix) return {StatusCode::kAborted, "a peer failed"};
  auto code = static_cast<StatusCode>(Take<int32_t>(&bytes[0]));
  auto rank = Take<int32_t>(&bytes[4]);
  std::string message(bytes.substr(kFailurePrefix));
  // What a peer may say: that ranks disagree, or that someone is lost. All else is "lost".
  if (code == StatusCode::kFailedPrecondition) return {code, message};
  return Status::PeerLost(rank, message);
}

}  // namespace muster::cpu
