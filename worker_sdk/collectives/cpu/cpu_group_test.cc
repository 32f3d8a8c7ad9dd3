// Results of the CPU group: every operation against a serial reference, bit for bit.

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "worker_sdk/collectives/cpu/group_rig.h"
#include "worker_sdk/collectives/cpu/reduction.h"

namespace muster::cpu {
namespace {

constexpr ReduceOp kAllOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                                ReduceOp::kAvg};

// The input of a rank: the same on every call, different on every rank.
template <class T>
std::vector<T> InputOf(int rank, size_t count) {
  // A linear congruential generator: large inputs are made many times, under sanitizers too.
  uint64_t state = static_cast<uint64_t>(rank) * 7919 + count;
  std::vector<T> values(count);
  for (T& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(static_cast<double>(state >> 11) * 0x1p-51 - 2);
    } else {
      value = static_cast<T>(state >> 8);
    }
  }
  return values;
}

// Written apart from reduction.cc: one element at a time, in rank order.
template <class T>
T Reference(ReduceOp op, const std::vector<std::vector<T>>& inputs, size_t i) {
  T result = inputs[0][i];
  for (size_t r = 1; r < inputs.size(); ++r) {
    T next = inputs[r][i];
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        if constexpr (std::is_integral_v<T>) {
          result = static_cast<T>(static_cast<uint64_t>(result) + static_cast<uint64_t>(next));
        } else {
          result = result + next;
        }
        break;
      case ReduceOp::kProd:
        if constexpr (std::is_integral_v<T>) {
          result = static_cast<T>(static_cast<uint64_t>(result) * static_cast<uint64_t>(next));
        } else {
          result = result * next;
        }
        break;
      case ReduceOp::kMin:
        if (next < result) result = next;
        break;
      case ReduceOp::kMax:
        if (result < next) result = next;
        break;
    }
  }
  if (op == ReduceOp::kAvg) result = static_cast<T>(result / static_cast<T>(inputs.size()));
  return result;
}

template <class T>
std::vector<std::vector<T>> AllInputs(int world_size, size_t count) {
  std::vector<std::vector<T>> inputs;
  inputs.reserve(static_cast<size_t>(world_size));
  for (int r = 0; r < world_size; ++r) inputs.push_back(InputOf<T>(r, count));
  return inputs;
}

template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
void ExpectAllReduce(ProcessGroup& group, size_t count, ReduceOp op) {
  auto inputs = AllInputs<T>(group.world_size(), count);
  std::vector<T> expected(count);
  for (size_t i = 0; i < count; ++i) expected[i] = Reference(op, inputs, i);
  std::vector<T> data = inputs[static_cast<size_t>(group.rank())];
  Status status = group.AllReduce(MutableView(data), op).Wait();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(SameBits(data, expected))
      << group.world_size() << " ranks, " << count << " " << ReduceOpName(op);
}

std::vector<size_t> Counts(int n) {
  auto ranks = static_cast<size_t>(n);
  return {0, 1, ranks - 1, ranks, ranks + 1, 2 * ranks + 1, 97, 1009, 33001};
}

class CpuGroup : public testing::TestWithParam<int> {};

TEST_P(CpuGroup, AllReduceIsTheSerialSumInRankOrderForEveryCount) {
  GroupRig(GetParam()).Run([](ProcessGroup& group) {
    for (size_t count : Counts(group.world_size())) {
      ExpectAllReduce<float>(group, count, ReduceOp::kSum);
    }
  });
}

TEST_P(CpuGroup, AllReduceCoversEveryOperationAndType) {
  GroupRig(GetParam()).Run([](ProcessGroup& group) {
    for (ReduceOp op : kAllOps) {
      ExpectAllReduce<float>(group, 1009, op);
      ExpectAllReduce<double>(group, 1009, op);
      if (op == ReduceOp::kAvg) continue;
      ExpectAllReduce<int32_t>(group, 1009, op);
      ExpectAllReduce<int64_t>(group, 1009, op);
      ExpectAllReduce<uint8_t>(group, 1009, op);
    }
  });
}

TEST_P(CpuGroup, RingIsEqualOnAllRanksAndInAllRuns) {
  int n = GetParam();
  for (size_t count : Counts(n)) {
    std::vector<std::vector<float>> first(static_cast<size_t>(n)), second(first);
    for (auto* results : {&first, &second}) {
      GroupRig(n, Algorithm::kRing).Run([&](ProcessGroup& group) {
        auto& data = (*results)[static_cast<size_t>(group.rank())];
        data = InputOf<float>(group.rank(), count);
        Status status = group.AllReduce(MutableView(data), ReduceOp::kAvg).Wait();
        ASSERT_TRUE(status.ok()) << status.message();
      });
    }
    auto inputs = AllInputs<float>(n, count);
    for (size_t r = 0; r < first.size(); ++r) {
      EXPECT_TRUE(SameBits(first[r], first[0])) << "rank " << r << ", " << count;
      EXPECT_TRUE(SameBits(second[r], first[0])) << "rank " << r << ", " << count;
    }
    for (size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(first[0][i], Reference(ReduceOp::kAvg, inputs, i), 1e-5);
    }
  }
}

TEST_P(CpuGroup, RingCoversEveryExactOperationAndType) {
  GroupRig(GetParam(), Algorithm::kRing).Run([](ProcessGroup& group) {
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
      ExpectAllReduce<int32_t>(group, 1009, op);
      ExpectAllReduce<int64_t>(group, 9001, op);
      ExpectAllReduce<uint8_t>(group, 1009, op);
    }
    ExpectAllReduce<double>(group, 40001, ReduceOp::kMax);
  });
}

TEST_P(CpuGroup, ReduceScatterLeavesEachRankItsSlice) {
  GroupRig(GetParam()).Run([](ProcessGroup& group) {
    auto n = static_cast<size_t>(group.world_size());
    for (size_t count : {size_t{0}, size_t{1}, size_t{97}, 40000 / n}) {
      auto inputs = AllInputs<double>(group.world_size(), n * count);
      std::vector<double> output(count);
      const auto& input = inputs[static_cast<size_t>(group.rank())];
      Status status = group.ReduceScatter(View(input), MutableView(output), ReduceOp::kSum).Wait();
      ASSERT_TRUE(status.ok()) << status.message();
      for (size_t i = 0; i < count; ++i) {
        size_t at = static_cast<size_t>(group.rank()) * count + i;
        ASSERT_EQ(output[i], Reference(ReduceOp::kSum, inputs, at));
      }
    }
  });
}

TEST_P(CpuGroup, ASliceMayBeGatheredFromAndScatteredToItsPlace) {
  GroupRig(GetParam()).Run([](ProcessGroup& group) {
    constexpr size_t kCount = 9001;
    auto n = static_cast<size_t>(group.world_size()), rank = static_cast<size_t>(group.rank());
    auto inputs = AllInputs<double>(group.world_size(), n * kCount);
    std::vector<double> data = inputs[rank];
    double* slice = data.data() + rank * kCount;
    Status status =
        group.ReduceScatter(View(data), {slice, kCount, DataType::kF64}, ReduceOp::kSum).Wait();
    ASSERT_TRUE(status.ok()) << status.message();
    status = group.AllGather({slice, kCount, DataType::kF64}, MutableView(data)).Wait();
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < data.size(); ++i) {
      ASSERT_EQ(data[i], Reference(ReduceOp::kSum, inputs, i));
    }
  });
}

TEST_P(CpuGroup, AllGatherCollectsEverySlice) {
  GroupRig(GetParam()).Run([](ProcessGroup& group) {
    for (size_t count : {size_t{0}, size_t{1}, size_t{97}, size_t{20000}}) {
      auto input = InputOf<int32_t>(group.rank(), count);
      std::vector<int32_t> output(static_cast<size_t>(group.world_size()) * count);
      Status status = group.AllGather(View(input), MutableView(output)).Wait();
      ASSERT_TRUE(status.ok()) << status.message();
      std::vector<int32_t> expected;
      for (int r = 0; r < group.world_size(); ++r) {
        auto slice = InputOf<int32_t>(r, count);
        expected.insert(expected.end(), slice.begin(), slice.end());
      }
      EXPECT_EQ(output, expected);
    }
  });
}

TEST_P(CpuGroup, BroadcastFromEveryRootSmallAndLarge) {
  GroupRig(GetParam()).Run([](ProcessGroup& group) {
    for (int root = 0; root < group.world_size(); ++root) {
      for (size_t count : {size_t{0}, size_t{1}, size_t{97}, size_t{20000}}) {
        auto data = InputOf<int64_t>(group.rank(), count);
        Status status = group.Broadcast(MutableView(data), root).Wait();
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(data, InputOf<int64_t>(root, count)) << "root " << root;
      }
    }
  });
}

TEST_P(CpuGroup, BarrierWaitsForTheLastRank) {
  std::atomic<int> arrived = 0;
  int n = GetParam();
  GroupRig(n).Run([&](ProcessGroup& group) {
    for (int turn = 1; turn <= 10; ++turn) {
      ++arrived;
      ASSERT_TRUE(group.Barrier().Wait().ok());
      EXPECT_GE(arrived.load(), turn * n);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, CpuGroup, testing::Values(1, 2, 3, 5, 7, 8, 16));

TEST(CpuGroupValues, CancellationShowsTheOrderOfAddition) {
  // In any other order than the ranks' the sum isn't 1.
  GroupRig(4).Run([](ProcessGroup& group) {
    const float values[] = {1e8F, 1, -1e8F, 1};
    std::vector<float> data(10, values[group.rank()]);
    ASSERT_TRUE(group.AllReduce(MutableView(data), ReduceOp::kSum).Wait().ok());
    for (float sum : data) EXPECT_EQ(sum, ((1e8F + 1) + -1e8F) + 1);
  });
}

TEST(CpuGroupValues, ANanOnAnyRankReachesAll) {
  for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing}) {
    for (int nan_rank = 0; nan_rank < 3; ++nan_rank) {
      GroupRig(3, algorithm).Run([&](ProcessGroup& group) {
        for (ReduceOp op : kAllOps) {
          float nan = std::numeric_limits<float>::quiet_NaN();
          // One element of each rank's part.
          std::vector<float> data(3, group.rank() == nan_rank ? nan : 1.0F);
          ASSERT_TRUE(group.AllReduce(MutableView(data), op).Wait().ok());
          for (float value : data) EXPECT_TRUE(std::isnan(value)) << ReduceOpName(op);
        }
      });
    }
  }
}

TEST(CpuGroupValues, InfinitiesDenormalsAndTheSignOfZeroSurvive) {
  GroupRig(3).Run([](ProcessGroup& group) {
    float inf = std::numeric_limits<float>::infinity();
    float tiny = std::numeric_limits<float>::denorm_min();
    // The last is inf - inf.
    std::vector<float> data = {group.rank() == 1 ? inf : 1.0F, tiny, -0.0F,
                               group.rank() == 1 ? inf : -inf};
    ASSERT_TRUE(group.AllReduce(MutableView(data), ReduceOp::kSum).Wait().ok());
    EXPECT_EQ(data[0], inf);
    EXPECT_EQ(data[1], 3 * tiny);
    EXPECT_TRUE(data[2] == 0 && std::signbit(data[2]));
    EXPECT_TRUE(std::isnan(data[3]));
    for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      std::vector<float> zero = {group.rank() == 0 ? -0.0F : 0.0F};
      ASSERT_TRUE(group.AllReduce(MutableView(zero), op).Wait().ok());
      EXPECT_TRUE(std::signbit(zero[0]));
    }
  });
}

TEST(CpuGroupValues, LargeBuffersThatNeedManyTurnsOfEveryWindow) {
  GroupRig(3).Run(
      [](ProcessGroup& group) { ExpectAllReduce<float>(group, (1u << 20) + 5, ReduceOp::kSum); });
  GroupRig(3, Algorithm::kRing).Run([](ProcessGroup& group) {
    ExpectAllReduce<int32_t>(group, (1u << 20) + 5, ReduceOp::kSum);
  });
}

TEST(CpuGroupValues, UnalignedBuffers) {
  GroupRig(2).Run([](ProcessGroup& group) {
    std::vector<char> bytes(4 * 1009 + 1);
    auto input = InputOf<float>(group.rank(), 1009);
    std::memcpy(bytes.data() + 1, input.data(), 4 * input.size());
    Buffer data{bytes.data() + 1, input.size(), DataType::kF32};
    ASSERT_TRUE(group.AllReduce(data, ReduceOp::kSum).Wait().ok());
    auto inputs = AllInputs<float>(2, 1009);
    for (size_t i = 0; i < input.size(); ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 1 + 4 * i, 4);
      ASSERT_EQ(value, Reference(ReduceOp::kSum, inputs, i));
    }
  });
}

}  // namespace
}  // namespace muster::cpu
