// The operations as pure machines: what they take from a peer, and what not. Their results are
// tested over sockets in cpu_group_test.cc.
#include "worker_sdk/collectives/cpu/operation.h"

#include <vector>

#include "gtest/gtest.h"
#include "worker_sdk/collectives/cpu/data_movement.h"
#include "worker_sdk/collectives/cpu/direct_reduce.h"
#include "worker_sdk/collectives/cpu/ring_all_reduce.h"

namespace muster::cpu {
namespace {

using Kind = Destination::Kind;

constexpr size_t kSegmentFloats = kSegmentBytes / sizeof(float);

Buffer Floats(std::vector<float>& values) { return {values.data(), values.size(), DataType::kF32}; }

Call AllReduceOf(size_t count) {
  return {CallKind::kAllReduce, 1, DataType::kF32, ReduceOp::kSum, -1, count};
}

TEST(PartOf, CoversEverythingOnceAndDiffersByOneAtMost) {
  for (size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{1000}}) {
    for (int parts : {1, 2, 3, 8}) {
      size_t next = 0;
      for (int i = 0; i < parts; ++i) {
        Part part = PartOf(count, parts, i);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.count - count / static_cast<size_t>(parts), 1u);
        next += part.count;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(DirectReduce, APeerThatIsAheadWaitsForTheWindow) {
  // Rank 0 of 3 owns 5 segments; rank 1 is quick, rank 2 slow.
  size_t own = 5 * kSegmentFloats;
  std::vector<float> data(3 * own, 1);
  DirectReduce operation(AllReduceOf(data.size()), {0, 3}, Floats(data));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(operation.PlaceFor(1, 0, kSegmentBytes).kind, Kind::kHere);
    operation.Arrived(1, 0, kSegmentBytes);
  }
  EXPECT_EQ(operation.PlaceFor(1, 0, kSegmentBytes).kind, Kind::kLater);
  // Results always have room.
  EXPECT_EQ(operation.PlaceFor(1, 1, kSegmentBytes).kind, Kind::kHere);
  EXPECT_EQ(operation.PlaceFor(2, 0, kSegmentBytes).kind, Kind::kHere);
  operation.Arrived(2, 0, kSegmentBytes);
  EXPECT_EQ(operation.PlaceFor(1, 0, kSegmentBytes).kind, Kind::kHere);
  EXPECT_EQ(operation.PlaceFor(1, 0, kSegmentBytes).kind, Kind::kHere);
}

TEST(DirectReduce, TakesNothingThatBelongsNowhere) {
  std::vector<float> data(9);
  DirectReduce operation(AllReduceOf(9), {0, 3}, Floats(data));
  EXPECT_EQ(operation.PlaceFor(1, 0, 11).kind, Kind::kWrong);  // not the whole contribution
  EXPECT_EQ(operation.PlaceFor(1, 0, 13).kind, Kind::kWrong);
  EXPECT_EQ(operation.PlaceFor(1, 1, 13).kind, Kind::kWrong);  // more than the peer's part
  EXPECT_EQ(operation.PlaceFor(1, 2, 12).kind, Kind::kWrong);  // no such lane
  EXPECT_EQ(operation.PlaceFor(1, 0, 12).kind, Kind::kHere);
  operation.Arrived(1, 0, 12);
  EXPECT_EQ(operation.PlaceFor(1, 0, 12).kind, Kind::kWrong);  // it has come already
}

TEST(DirectReduce, ReducesOnlyWhenAllContributionsAreThereAndPassesThemOn) {
  std::vector<float> data = {1, 2, 3};
  DirectReduce operation(AllReduceOf(3), {0, 3}, Floats(data));
  for (int peer : {1, 2}) {
    // First our contribution to the peer's part.
    auto next = operation.NextFor(peer);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->lane, 0);
    EXPECT_EQ(next->data, reinterpret_cast<std::byte*>(&data[static_cast<size_t>(peer)]));
    EXPECT_FALSE(operation.NextFor(peer));
    EXPECT_FALSE(operation.IsAllTaken(peer));
  }
  for (int peer : {2, 1}) {
    Destination to = operation.PlaceFor(peer, 0, 4);
    ASSERT_EQ(to.kind, Kind::kHere);
    *reinterpret_cast<float*>(to.data) = 10;
    EXPECT_EQ(data[0], 1);
    operation.Arrived(peer, 0, 4);
  }
  EXPECT_EQ(data[0], 21);
  auto next = operation.NextFor(1);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->lane, 1);
  EXPECT_TRUE(operation.IsAllTaken(1));
  EXPECT_FALSE(operation.HasAllFrom(1));
  operation.Arrived(1, 1, 4);
  EXPECT_TRUE(operation.HasAllFrom(1));
}

TEST(RingAllReduce, HearsTheLeftNeighbourOnlyAndSendsWhatWasReceived) {
  std::vector<float> data = {1, 2, 3, 4};
  RingAllReduce operation(AllReduceOf(4), {1, 4}, Floats(data));
  EXPECT_EQ(operation.PlaceFor(2, 0, 4).kind, Kind::kWrong);
  EXPECT_EQ(operation.PlaceFor(0, 1, 4).kind, Kind::kWrong);
  EXPECT_EQ(operation.PlaceFor(0, 0, 8).kind, Kind::kWrong);
  EXPECT_FALSE(operation.NextFor(0));
  EXPECT_TRUE(operation.NextFor(2));
  EXPECT_FALSE(operation.NextFor(2));  // the next turn's part hasn't come
  EXPECT_EQ(operation.PlaceFor(0, 0, 4).kind, Kind::kHere);
  operation.Arrived(0, 0, 4);
  EXPECT_TRUE(operation.NextFor(2));
  EXPECT_TRUE(operation.IsAllTaken(3));
  EXPECT_FALSE(operation.IsAllTaken(2));
}

TEST(Receive, TakesItsBytesAndNoMore) {
  std::vector<float> data(2);
  Receive operation({CallKind::kSendReceive, 1}, {0, 2}, Floats(data), 1);
  EXPECT_EQ(operation.PlaceFor(1, 0, 9).kind, Kind::kWrong);
  EXPECT_EQ(operation.PlaceFor(1, 1, 8).kind, Kind::kWrong);
  EXPECT_EQ(operation.PlaceFor(1, 0, 8).kind, Kind::kHere);
  operation.Arrived(1, 0, 8);
  EXPECT_TRUE(operation.HasAllFrom(1));
  EXPECT_EQ(operation.PlaceFor(1, 0, 1).kind, Kind::kWrong);
}

}  // namespace
}  // namespace muster::cpu
