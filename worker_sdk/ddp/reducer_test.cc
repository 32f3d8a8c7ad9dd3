#include "worker_sdk/ddp/reducer.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "worker_sdk/collectives/cpu/group_rig.h"

namespace muster {
namespace {

using cpu::GroupRig;

// A model of `counts.size()` parameters, of which rank r's values are r + 1.
struct Model {
  std::vector<std::vector<float>> values;

  Model(int rank, const std::vector<size_t>& counts) {
    for (size_t count : counts) values.emplace_back(count, static_cast<float>(rank + 1));
  }
  std::vector<Parameter> Parameters() {
    std::vector<Parameter> parameters;
    for (size_t i = 0; i < values.size(); ++i) {
      parameters.push_back(
          {"p" + std::to_string(i), values[i].data(), values[i].size(), DataType::kF32});
    }
    return parameters;
  }
};

std::span<float> Floats(Buffer buffer) { return {static_cast<float*>(buffer.data), buffer.count}; }

// Rank r's gradient of parameter i: i + 10 r everywhere.
void AddGradient(Reducer& reducer, int rank, size_t index) {
  for (float& g : Floats(reducer.Gradient(index)))
    g += static_cast<float>(index) + 10.0F * static_cast<float>(rank);
}

// The mean over `n` ranks of `steps` times what AddGradient() adds.
float Mean(int n, size_t index, int steps = 1) {
  float sum = 0;
  for (int r = 0; r < n; ++r) {
    float gradient = 0;
    for (int s = 0; s < steps; ++s)
      gradient += static_cast<float>(index) + 10.0F * static_cast<float>(r);
    sum += gradient;
  }
  return sum / static_cast<float>(n);
}

// Small buckets, so that there are several.
ReducerOptions SmallBuckets() {
  ReducerOptions options;
  options.limits = {64, 128};
  return options;
}

const std::vector<size_t> kCounts = {100, 3, 40, 1, 0, 17, 5};

void ExpectMeans(const Reducer& reducer, int n, int steps = 1) {
  for (size_t i = 0; i < reducer.parameter_count(); ++i) {
    for (float g : Floats(reducer.Gradient(i)))
      ASSERT_EQ(g, Mean(n, i, steps)) << "parameter " << i;
  }
}

TEST(Reducer, BroadcastsParametersAndAveragesGradientsWhateverTheOrderOfMarking) {
  for (int n : {1, 2, 3}) {
    GroupRig(n).Run([n](ProcessGroup& group) {
      Model model(group.rank(), kCounts);
      auto reducer = Reducer::Create(group, model.Parameters(), SmallBuckets());
      ASSERT_TRUE(reducer.ok()) << reducer.status().message();
      for (const auto& values : model.values) {
        for (float value : values) ASSERT_EQ(value, 1.0F);
      }
      EXPECT_GT((*reducer)->buckets().size(), 2u);
      std::mt19937 random(static_cast<unsigned>(group.rank()));
      void* address = (*reducer)->Gradient(2).data;
      for (int step = 0; step < 5; ++step) {
        (*reducer)->ZeroGradients();
        std::vector<size_t> order(kCounts.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::ranges::shuffle(order, random);
        for (size_t index : order) {
          AddGradient(**reducer, group.rank(), index);
          ASSERT_TRUE((*reducer)->MarkReady(index).ok());
        }
        Status status = (*reducer)->Finish();
        ASSERT_TRUE(status.ok()) << status.message();
        ExpectMeans(**reducer, n);
      }
      EXPECT_EQ((*reducer)->Gradient(2).data, address);
    });
  }
}

TEST(Reducer, DoublesAndFloatsTogether) {
  GroupRig(2).Run([](ProcessGroup& group) {
    std::vector<float> a(10);
    std::vector<double> b(20);
    auto reducer = Reducer::Create(group, {{"a", a.data(), a.size(), DataType::kF32},
                                           {"b", b.data(), b.size(), DataType::kF64}});
    ASSERT_TRUE(reducer.ok());
    Floats((*reducer)->Gradient(0))[9] = static_cast<float>(group.rank());
    auto* gradients = static_cast<double*>((*reducer)->Gradient(1).data);
    gradients[19] = group.rank() + 0.25;
    ASSERT_TRUE((*reducer)->MarkReady(0).ok());
    ASSERT_TRUE((*reducer)->MarkReady(1).ok());
    ASSERT_TRUE((*reducer)->Finish().ok());
    EXPECT_EQ(Floats((*reducer)->Gradient(0))[9], 0.5F);
    EXPECT_EQ(gradients[19], 0.75);
  });
}

TEST(Reducer, FullBucketsLeaveBeforeTheBackwardPassIsOver) {
  GroupRig(2).Run([](ProcessGroup& group) {
    Model model(group.rank(), kCounts);
    std::vector<std::string> trace;
    ReducerOptions options = SmallBuckets();
    options.on_launch = [&](size_t bucket) { trace.push_back("launch " + std::to_string(bucket)); };
    auto reducer = Reducer::Create(group, model.Parameters(), options);
    ASSERT_TRUE(reducer.ok());
    for (size_t i = kCounts.size(); i-- > 0;) {
      AddGradient(**reducer, group.rank(), i);
      trace.push_back("mark " + std::to_string(i));
      ASSERT_TRUE((*reducer)->MarkReady(i).ok());
    }
    trace.push_back("finish");
    ASSERT_TRUE((*reducer)->Finish().ok());
    EXPECT_EQ(trace, (std::vector<std::string>{"mark 6", "mark 5", "launch 0", "mark 4", "mark 3",
                                               "mark 2", "launch 1", "mark 1", "mark 0", "launch 2",
                                               "finish"}));
    ExpectMeans(**reducer, 2);
  });
}

TEST(Reducer, BucketsLeaveInOrderThoughALaterOneIsReadyFirst) {
  GroupRig(2).Run([](ProcessGroup& group) {
    Model model(group.rank(), {64, 64, 64});
    std::vector<size_t> launched;
    ReducerOptions options = SmallBuckets();
    options.on_launch = [&](size_t bucket) { launched.push_back(bucket); };
    auto reducer = Reducer::Create(group, model.Parameters(), options);
    ASSERT_TRUE(reducer.ok());
    for (size_t index : {size_t{0}, size_t{1}}) {
      ASSERT_TRUE((*reducer)->MarkReady(index).ok());
      EXPECT_TRUE(launched.empty());
    }
    ASSERT_TRUE((*reducer)->MarkReady(2).ok());
    EXPECT_EQ(launched, (std::vector<size_t>{0, 1, 2}));
    ASSERT_TRUE((*reducer)->Finish().ok());
  });
}

TEST(Reducer, NoSyncAccumulatesWithoutCommunication) {
  GroupRig(3).Run([](ProcessGroup& group) {
    Model model(group.rank(), kCounts);
    int launches = 0;
    ReducerOptions options = SmallBuckets();
    options.on_launch = [&](size_t) { ++launches; };
    auto reducer = Reducer::Create(group, model.Parameters(), options);
    ASSERT_TRUE(reducer.ok());
    auto step = [&] {
      for (size_t i = kCounts.size(); i-- > 0;) {
        AddGradient(**reducer, group.rank(), i);
        ASSERT_TRUE((*reducer)->MarkReady(i).ok());
      }
      ASSERT_TRUE((*reducer)->Finish().ok());
    };
    {
      Reducer::NoSync no_sync(**reducer);
      step();
      step();
    }
    EXPECT_EQ(launches, 0);
    step();
    EXPECT_EQ(launches, static_cast<int>((*reducer)->buckets().size()));
    ExpectMeans(**reducer, 3, 3);
  });
}

TEST(Reducer, AParameterUsedOnlyInAnEarlierMicroStepIsStillAveraged) {
  GroupRig(2).Run([](ProcessGroup& group) {
    Model model(group.rank(), {4, 4});
    auto reducer = Reducer::Create(group, model.Parameters());
    ASSERT_TRUE(reducer.ok());
    {
      Reducer::NoSync no_sync(**reducer);
      AddGradient(**reducer, group.rank(), 1);
      ASSERT_TRUE((*reducer)->MarkReady(1).ok());
      ASSERT_TRUE((*reducer)->Finish().ok());
    }
    ASSERT_TRUE((*reducer)->MarkReady(0).ok());
    ASSERT_TRUE((*reducer)->MarkReady(1).ok());
    ASSERT_TRUE((*reducer)->Finish().ok());
    EXPECT_EQ(Floats((*reducer)->Gradient(1))[0], Mean(2, 1));
  });
}

TEST(Reducer, MarkingTwiceOrWhatIsNotThereIsAnErrorThatNamesIt) {
  GroupRig(2).Run([](ProcessGroup& group) {
    Model model(group.rank(), {4, 4});
    auto reducer = Reducer::Create(group, model.Parameters());
    ASSERT_TRUE(reducer.ok());
    ASSERT_TRUE((*reducer)->MarkReady(1).ok());
    Status twice = (*reducer)->MarkReady(1);
    EXPECT_EQ(twice.code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(twice.message().find("'p1' was marked ready twice"), std::string::npos);
    EXPECT_EQ((*reducer)->MarkReady(2).code(), StatusCode::kInvalidArgument);
    // Nobody is stuck, and the step is right.
    ASSERT_TRUE((*reducer)->MarkReady(0).ok());
    EXPECT_TRUE((*reducer)->Finish().ok());
  });
}

TEST(Reducer, WhatOneRankLeavesUnmarkedIsNamedOnAllInThatStep) {
  GroupRig(3).Run([](ProcessGroup& group) {
    Model model(group.rank(), kCounts);
    auto reducer = Reducer::Create(group, model.Parameters(), SmallBuckets());
    ASSERT_TRUE(reducer.ok());
    for (size_t i = kCounts.size(); i-- > 0;) {
      bool is_forgotten = (group.rank() == 1 && i == 5) || (group.rank() == 2 && i == 0);
      if (is_forgotten) continue;
      ASSERT_TRUE((*reducer)->MarkReady(i).ok());
    }
    Status status = (*reducer)->Finish();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.message();
    EXPECT_NE(status.message().find("'p5' on rank 1, 'p0' on rank 2"), std::string::npos)
        << status.message();
    // The next step may go on.
    (*reducer)->ZeroGradients();
    for (size_t i = 0; i < kCounts.size(); ++i) {
      AddGradient(**reducer, group.rank(), i);
      ASSERT_TRUE((*reducer)->MarkReady(i).ok());
    }
    ASSERT_TRUE((*reducer)->Finish().ok());
    ExpectMeans(**reducer, 3);
  });
}

TEST(Reducer, DifferentParametersAreNamedOnEveryRankZeroIncluded) {
  struct Row {
    const char* words;
    Parameter wrong;  // rank 1's second parameter; without a name: it has none
  };
  std::vector<float> data(100);
  const std::vector<Row> rows = {
      {"rank 1 has 'q' (f32, 4 elements) as number 1, rank 0 has 'p1' (f32, 4 elements)",
       {"q", data.data(), 4, DataType::kF32}},
      {"rank 1 has 'p1' (f32, 5 elements) as number 1", {"p1", data.data(), 5, DataType::kF32}},
      {"rank 1 has 'p1' (f64, 4 elements) as number 1", {"p1", data.data(), 4, DataType::kF64}},
      {"rank 1 has 1 parameters, rank 0 has 2", {}},
  };
  for (const Row& row : rows) {
    GroupRig(3).Run([&](ProcessGroup& group) {
      Model model(group.rank(), {4, 4});
      auto parameters = model.Parameters();
      if (group.rank() == 1) {
        parameters.pop_back();
        if (!row.wrong.name.empty()) parameters.push_back(row.wrong);
      }
      Status status = Reducer::Create(group, parameters).status();
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << row.words;
      EXPECT_NE(status.message().find(row.words), std::string::npos) << status.message();
      // The group is as good as before.
      EXPECT_TRUE(group.Barrier().Wait().ok());
    });
  }
}

TEST(Reducer, WhatOneRankCannotDoIsAnErrorOnAll) {
  std::vector<float> data(4);
  // A size that no machine has: only the size is looked at before the memory is there.
  const std::pair<StatusCode, Parameter> cases[] = {
      {StatusCode::kInvalidArgument, {"p", data.data(), 4, DataType::kI32}},
      {StatusCode::kInvalidArgument, {"p", nullptr, 4, DataType::kF32}},
      {StatusCode::kResourceExhausted, {"p", data.data(), size_t{1} << 55, DataType::kF32}},
  };
  for (const auto& [code, wrong] : cases) {
    GroupRig(2).Run([&, code = code, wrong = wrong](ProcessGroup& group) {
      Parameter right{"p", data.data(), 4, DataType::kF32};
      std::vector<float> own(4);
      right.data = own.data();
      Status status = Reducer::Create(group, {group.rank() == 1 ? wrong : right}).status();
      EXPECT_EQ(status.code(), code) << status.message();
      EXPECT_NE(status.message().find("rank 1: "), std::string::npos) << status.message();
    });
  }
}

TEST(Reducer, NoParametersAreNoWork) {
  GroupRig(2).Run([](ProcessGroup& group) {
    auto reducer = Reducer::Create(group, {});
    ASSERT_TRUE(reducer.ok());
    EXPECT_TRUE((*reducer)->Finish().ok());
  });
}

TEST(Reducer, ALostPeerEndsTheStep) {
  GroupRig(2).Run([](ProcessGroup& group) {
    Model model(group.rank(), kCounts);
    auto reducer = Reducer::Create(group, model.Parameters(), SmallBuckets());
    ASSERT_TRUE(reducer.ok());
    if (group.rank() == 1) return;
    for (size_t i = 0; i < kCounts.size(); ++i) ASSERT_TRUE((*reducer)->MarkReady(i).ok());
    Status status = (*reducer)->Finish();
    EXPECT_EQ(status.code(), StatusCode::kAborted);
    EXPECT_EQ(status.lost_rank(), 1);
  });
}

}  // namespace
}  // namespace muster
