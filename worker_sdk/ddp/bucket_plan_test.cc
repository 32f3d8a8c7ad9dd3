#include "worker_sdk/ddp/bucket_plan.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr DataType F32 = DataType::kF32;
constexpr DataType F64 = DataType::kF64;

// "f32:[3 2](24)": type, parameters, count of each bucket.
std::string Plan(const std::vector<GradientShape>& gradients, const BucketLimits& limits) {
  std::string text;
  for (const Bucket& bucket : PlanBuckets(gradients, limits)) {
    text += text.empty() ? "" : " ";
    text += std::string(DataTypeName(bucket.type)) + ":[";
    for (size_t index : bucket.parameters) {
      text += (text.back() == '[' ? "" : " ") + std::to_string(index);
    }
    text += "](" + std::to_string(bucket.count) + ")";
  }
  return text;
}

TEST(BucketPlan, IsThisTable) {
  struct Row {
    const char* rule;
    std::vector<GradientShape> gradients;
    const char* plan;
  };
  // Limits: 40 bytes, then 100 bytes.
  const BucketLimits limits{40, 100};
  const std::vector<Row> rows = {
      {"nothing", {}, ""},
      {"one", {{3, F32}}, "f32:[0](3)"},
      {"reverse order", {{1, F32}, {2, F32}, {3, F32}}, "f32:[2 1 0](6)"},
      {"closes when the limit is reached exactly",
       {{1, F32}, {5, F32}, {5, F32}},
       "f32:[2 1](10) f32:[0](1)"},
      {"may overshoot by one", {{1, F32}, {50, F32}, {9, F32}}, "f32:[2 1](59) f32:[0](1)"},
      {"a large one alone", {{1, F32}, {1000, F32}}, "f32:[1](1000) f32:[0](1)"},
      {"the second limit is larger",
       {{1, F32}, {15, F32}, {10, F32}, {10, F32}},
       "f32:[3](10) f32:[2 1](25) f32:[0](1)"},
      {"an empty one travels along", {{0, F32}, {10, F32}, {0, F32}}, "f32:[2 1](10) f32:[0](0)"},
      {"each type has its own limits, open ones by their first gradient",
       {{1, F64}, {1, F32}, {5, F64}, {10, F32}, {1, F64}},
       "f32:[3](10) f64:[4 2](6) f32:[1](1) f64:[0](1)"},
  };
  for (const Row& row : rows) EXPECT_EQ(Plan(row.gradients, limits), row.plan) << row.rule;
}

TEST(BucketPlan, DefaultsAreOneThenTwentyFiveMebibytes) {
  // Eight layers of 4 MiB: the first closes its bucket alone, seven fill the second to 28 MiB.
  std::vector<GradientShape> gradients(9, {1u << 20, F32});
  EXPECT_EQ(Plan(gradients, {}), "f32:[8](1048576) f32:[7 6 5 4 3 2 1](7340032) f32:[0](1048576)");
}

}  // namespace
}  // namespace muster
