#include "worker_sdk/checkpoint/loaded_checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace muster {
namespace {

// A shard with tensor `name`, floats {1, 2}.
FileBytes ShardOf(const std::string& name) {
  std::string file;
  const auto layout = safetensors::Plan({{.name = name, .dtype = "F32", .shape = {1, 2}}}, &file);
  EXPECT_TRUE(layout.ok());
  const float data[2] = {1, 2};
  file.append(reinterpret_cast<const char*>(data), sizeof data);
  FileBytes bytes{std::make_unique_for_overwrite<std::byte[]>(file.size()), file.size()};
  std::memcpy(bytes.data.get(), file.data(), file.size());
  return bytes;
}

Result<LoadedCheckpoint> Load(const std::vector<std::string>& tensors) {
  Manifest manifest;
  manifest.name = "step-1.r1-x";
  manifest.random_states = {"zero", "one"};
  std::vector<FileBytes> shards;
  for (const std::string& tensor : tensors) {
    manifest.shards.emplace_back().file = "shard";
    shards.push_back(ShardOf(tensor));
  }
  return LoadedCheckpoint::Create(std::move(manifest), std::move(shards));
}

TEST(LoadedCheckpoint, CopiesTensorsOut) {
  const auto loaded = Load({"a", "b"});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->tensor_names(), (std::vector<std::string>{"a", "b"}));
  std::vector<float> values(2);
  ASSERT_TRUE(loaded->CopyTo("b", MutableView(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 2}));
}

TEST(LoadedCheckpoint, ErrorsNameTensorAndBothSides) {
  const auto loaded = Load({"a"});
  ASSERT_TRUE(loaded.ok());
  std::vector<float> floats(3);
  std::vector<int32_t> integers(2);
  const Status missing = loaded->CopyTo("c", MutableView(floats));
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("\"c\""), std::string::npos);
  const Status longer = loaded->CopyTo("a", MutableView(floats));
  EXPECT_EQ(longer.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(longer.message().find("8 bytes of F32, the program wants 12 of F32"), std::string::npos)
      << longer.message();
  EXPECT_EQ(loaded->CopyTo("a", MutableView(integers)).code(), StatusCode::kInvalidArgument);
}

TEST(LoadedCheckpoint, NewRanksHaveNoRandomState) {
  const auto loaded = Load({});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->random_state(1), "one");
  EXPECT_EQ(loaded->random_state(2), "");
  EXPECT_EQ(loaded->random_state(-1), "");
}

TEST(LoadedCheckpoint, RefusesATensorInTwoShards) {
  EXPECT_EQ(Load({"a", "a"}).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster
