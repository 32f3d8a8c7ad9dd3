#include "worker_sdk/collectives/cpu/wire.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::cpu {
namespace {

TEST(Wire, HeadersSurviveARoundTripAndImpossibleOnesAreRefused) {
  struct Row {
    FrameKind kind;
    uint32_t length;
    bool is_possible;
  };
  const Row rows[] = {
      {FrameKind::kCall, kCallBytes, true},
      {FrameKind::kCall, kCallBytes + 1, false},
      {FrameKind::kData, 1, true},
      {FrameKind::kData, kSegmentBytes, true},
      {FrameKind::kData, 0, false},
      {FrameKind::kData, kSegmentBytes + 1, false},
      {FrameKind::kFailure, 8, true},
      {FrameKind::kFailure, 7, false},
      {FrameKind::kFailure, kMaxFailureBytes + 1, false},
      {FrameKind::kGoodbye, 0, true},
      {FrameKind::kGoodbye, 1, false},
      {static_cast<FrameKind>(0), 0, false},
      {static_cast<FrameKind>(5), 0, false},
  };
  for (const Row& row : rows) {
    auto bytes = EncodeHeader({row.kind, 1, row.length});
    auto header = DecodeHeader(bytes);
    EXPECT_EQ(header.has_value(), row.is_possible)
        << static_cast<int>(row.kind) << " " << row.length;
    if (header) {
      EXPECT_EQ(header->kind, row.kind);
      EXPECT_EQ(header->lane, 1);
      EXPECT_EQ(header->length, row.length);
    }
    bytes[3] = std::byte{1};
    EXPECT_FALSE(DecodeHeader(bytes).has_value());
  }
}

TEST(Wire, ACallSurvivesARoundTripWithAllItsFields) {
  Call call{CallKind::kBroadcast, 1u << 20, DataType::kF64, ReduceOp::kMax, 7, uint64_t{1} << 40};
  EXPECT_EQ(DecodeCall(EncodeCall(call)), call);
}

TEST(Wire, CallsAreDescribedInWords) {
  EXPECT_EQ(Describe({CallKind::kBarrier, 3}), "barrier #3");
  EXPECT_EQ(Describe({CallKind::kAllReduce, 5, DataType::kF32, ReduceOp::kSum, -1, 1000}),
            "all_reduce #5 (sum, f32, 1000 elements)");
  EXPECT_EQ(Describe({CallKind::kBroadcast, 1, DataType::kI64, ReduceOp::kSum, 2, 0}),
            "broadcast #1 (i64, 0 elements, root 2)");
  EXPECT_EQ(Describe({CallKind::kSendReceive, 1, DataType::kU8, ReduceOp::kSum, 2, 9}),
            "send/receive #1 (u8, 9 elements, to rank 2)");
}

TEST(Wire, AFailureKeepsCodeCulpritAndMessage) {
  Status lost = DecodeFailure(EncodeFailure(Status::PeerLost(4, "rank 4 is lost")));
  EXPECT_EQ(lost.code(), StatusCode::kAborted);
  EXPECT_EQ(lost.lost_rank(), 4);
  EXPECT_EQ(lost.message(), "rank 4 is lost");
  Status disagree =
      DecodeFailure(EncodeFailure({StatusCode::kFailedPrecondition, "the ranks disagree"}));
  EXPECT_EQ(disagree.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(disagree.message(), "the ranks disagree");
}

TEST(Wire, AFailureIsNeverOkAndNeverTooLong) {
  EXPECT_EQ(DecodeFailure("").code(), StatusCode::kAborted);
  EXPECT_EQ(DecodeFailure(std::string(8, '\0')).code(), StatusCode::kAborted);
  std::string bytes = EncodeFailure(Status::PeerLost(0, std::string(100000, 'x')));
  EXPECT_EQ(bytes.size(), kMaxFailureBytes);
}

}  // namespace
}  // namespace muster::cpu
