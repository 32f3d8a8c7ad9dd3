#include "worker_sdk/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <string>

#include "worker_sdk/checkpoint/fingerprint.h"

namespace muster {
namespace {

Manifest SomeManifest() {
  return {.name = "step-300.r2-000102030405060708090a0b0c0d0e0f",
          .step = 300,
          .epoch = 2,
          .generation = 4,
          .round = 2,
          .parent = "step-200.r1-ff0102030405060708090a0b0c0d0e0f",
          .world_size = 2,
          .sampler = SamplerState{.seed = ~uint64_t{0},
                                  .epoch = 2,
                                  .position = 64,
                                  .world_size = 2,
                                  .dataset_size = 100,
                                  .shuffle = true},
          .random_states = {std::string("\x00\xff\x80", 3), ""},
          .extras = {{"learning_rate", "0.1"}},
          .shards = {{.file = "shard-00000-of-00001.safetensors",
                      .bytes = 4096,
                      .xxh3 = 0xdeadbeef,
                      .tensors = {{.name = "w", .xxh3 = 1}, {.name = "b", .xxh3 = 2}}}}};
}

std::string Encoded(const Manifest& manifest) {
  const Result<std::string> text = EncodeManifest(manifest);
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : "";
}

TEST(Manifest, ReadsWhatItWrote) {
  const Result<Manifest> parsed = ParseManifest(Encoded(SomeManifest()), "m");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, SomeManifest());
  const Result<Manifest> empty = ParseManifest(Encoded(Manifest{}), "m");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(*empty, Manifest{});
}

TEST(Manifest, EveryFlippedBitIsFound) {
  const std::string good = Encoded(SomeManifest());
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const Result<Manifest> parsed = ParseManifest(bad, "/x/manifest.json");
      ASSERT_FALSE(parsed.ok()) << i << " " << bit;
      ASSERT_EQ(parsed.status().code(), StatusCode::kDataLoss);
      ASSERT_NE(parsed.status().message().find("/x/manifest.json"), std::string::npos);
    }
  }
}

TEST(Manifest, EveryCutIsFound) {
  const std::string good = Encoded(SomeManifest());
  for (size_t size = 0; size < good.size(); ++size) {
    ASSERT_FALSE(ParseManifest(good.substr(0, size), "m").ok()) << size;
  }
  EXPECT_FALSE(ParseManifest(good + "\n", "m").ok());
}

TEST(Manifest, RefusesTextsThatAreNotUtf8) {
  Manifest manifest = SomeManifest();
  manifest.extras["a"] = "\xff";
  EXPECT_EQ(EncodeManifest(manifest).status().code(), StatusCode::kInvalidArgument);
}

TEST(Manifest, NeverLeadsOutOfItsDirectory) {
  Manifest manifest = SomeManifest();
  manifest.shards[0].file = "../other/shard";
  EXPECT_EQ(ParseManifest(Encoded(manifest), "m").status().code(), StatusCode::kDataLoss);
}

// What a sound hash is around, written by another program or version.
std::string Framed(const std::string& body) {
  return "{\"xxh3\":\"" + Fingerprint::Hex(Fingerprint::Of(body.data(), body.size())) +
         "\",\"manifest\":" + body + "}\n";
}

TEST(Manifest, SaysThatANewerVersionWroteIt) {
  const Status newer = ParseManifest(Framed(R"({"format":2})"), "m").status();
  EXPECT_EQ(newer.code(), StatusCode::kDataLoss);
  EXPECT_NE(newer.message().find("format 2"), std::string::npos) << newer.message();
}

TEST(Manifest, RefusesMembersThatAreMissingOrOfAnotherKind) {
  for (const char* body : {"", "null", "[]", "{", R"({"format":1})", R"({"format":"1"})",
                           R"({"format":1,"name":5})"}) {
    EXPECT_EQ(ParseManifest(Framed(body), "m").status().code(), StatusCode::kDataLoss) << body;
  }
}

}  // namespace
}  // namespace muster
