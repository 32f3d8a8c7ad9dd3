#include "worker_sdk/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "worker_sdk/data/random_stream.h"

namespace muster::safetensors {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A file of this header text and data.
std::string File(const std::string& header, const std::string& data) {
  std::string file;
  for (size_t i = 0; i < 8; ++i) file.push_back(static_cast<char>(header.size() >> (8 * i)));
  return file + header + data;
}

std::vector<TensorEntry> SomeTensors() {
  return {{.name = "bytes", .dtype = "U8", .shape = {3}},
          {.name = "weight", .dtype = "F32", .shape = {2, 3}},
          {.name = "empty", .dtype = "F32", .shape = {0, 7}},
          {.name = "count", .dtype = "I64", .shape = {}}};
}

std::string SomeFile() {
  std::string header;
  const Result<Layout> layout = Plan(SomeTensors(), &header);
  EXPECT_TRUE(layout.ok());
  return header + std::string(layout->data_bytes, 'x');
}

TEST(Safetensors, ReadsWhatItWrote) {
  std::string header;
  const Result<Layout> planned = Plan(SomeTensors(), &header);
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(planned->data_bytes, 8U + 24U + 3U);
  EXPECT_EQ(planned->data_offset, header.size());
  const Result<Layout> parsed = Parse(Bytes(SomeFile()), "a");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->data_offset, planned->data_offset);
  ASSERT_EQ(parsed->tensors.size(), 4U);
  for (const TensorEntry& tensor : planned->tensors) {
    EXPECT_NE(std::find(parsed->tensors.begin(), parsed->tensors.end(), tensor),
              parsed->tensors.end())
        << tensor.name;
  }
}

TEST(Safetensors, EveryTensorIsAligned) {
  std::string header;
  const Result<Layout> layout = Plan(SomeTensors(), &header);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->data_offset % 8, 0U);
  EXPECT_EQ(layout->tensors[0].name, "count");
  for (const TensorEntry& tensor : layout->tensors) {
    const uint64_t element = tensor.dtype == "I64" ? 8 : tensor.dtype == "F32" ? 4 : 1;
    EXPECT_EQ(tensor.begin % element, 0U) << tensor.name;
  }
}

TEST(Safetensors, NoTensorsAreAFileToo) {
  std::string header;
  ASSERT_TRUE(Plan({}, &header).ok());
  const Result<Layout> layout = Parse(Bytes(header), "a");
  ASSERT_TRUE(layout.ok());
  EXPECT_TRUE(layout->tensors.empty());
}

TEST(Safetensors, RefusesImpossibleTensors) {
  std::string header;
  const auto code = [&](std::vector<TensorEntry> tensors) {
    return Plan(std::move(tensors), &header).status().code();
  };
  const TensorEntry good{.name = "a", .dtype = "F32", .shape = {2}};
  EXPECT_EQ(code({good, good}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{.name = "", .dtype = "F32"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{.name = "__metadata__", .dtype = "F32"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{.name = "a", .dtype = "F31"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{.name = "\xff", .dtype = "F32"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{.name = "a", .dtype = "F32", .shape = {uint64_t{1} << 40, uint64_t{1} << 40}}}),
            StatusCode::kInvalidArgument);
}

struct BadFile {
  const char* why;
  std::string file;
  const char* says;
};

std::vector<BadFile> BadFiles() {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const auto with = [](const std::string& members) { return "{" + members + "}"; };
  std::string huge = File("{}", "");
  huge[7] = '\x7f';
  return {
      {"no size word", "1234567", "only 7 bytes"},
      {"a size beyond the file", File("{}", "").substr(0, 9), "2 bytes"},
      {"a giant size", huge, "header is said"},
      {"not an object", File("[]", ""), "begin with '{'"},
      {"spaces first", File(" {}", ""), "begin with '{'"},
      {"not JSON", File("{\"a\"", ""), "JSON"},
      {"not UTF-8", File("{\"\xff\":1}", ""), "JSON"},
      {"a name twice", File(with(a + "," + a), "1234"), "\"a\" twice"},
      {"a member twice",
       File(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"),
       "\"dtype\" twice"},
      {"not a description", File(R"({"a":5})", ""), "tensor \"a\""},
      {"no shape", File(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", "1234"), "lacks"},
      {"a dtype of another kind",
       File(R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", "1234"), "isn't a text"},
      {"an unknown dtype", File(R"({"a":{"dtype":"X","shape":[1],"data_offsets":[0,4]}})", "1234"),
       "unknown"},
      {"a negative size",
       File(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234"), "sizes"},
      {"a fraction", File(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", "1234"),
       "sizes"},
      {"an offset too few", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", "1234"),
       "two offsets"},
      {"the end first", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "1234"),
       "end before"},
      {"a shape that doesn't fit",
       File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"), "don't fit"},
      {"an overflow",
       File(R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", "1234"),
       "don't fit"},
      {"a hole", File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12"), "hole"},
      {"an overlap",
       File(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
            R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
            "123"),
       "within the one before"},
      {"cut off", File(with(a), "123"), "cut off"},
      {"bytes that belong to nothing", File(with(a), "12345"), "4 bytes"},
      {"metadata of another kind", File(R"({"__metadata__":{"a":1}})", ""), "__metadata__"},
  };
}

TEST(Safetensors, NamesWhatIsWrongWithAFile) {
  for (const BadFile& bad : BadFiles()) {
    SCOPED_TRACE(bad.why);
    const Result<Layout> layout = Parse(Bytes(bad.file), "/x/y.safetensors");
    ASSERT_FALSE(layout.ok());
    EXPECT_EQ(layout.status().code(), StatusCode::kDataLoss);
    EXPECT_NE(layout.status().message().find("/x/y.safetensors"), std::string::npos);
    EXPECT_NE(layout.status().message().find(bad.says), std::string::npos)
        << layout.status().message();
  }
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  const std::string file = File(
      R"({"b":{"shape":[2],"data_offsets":[4,8],"dtype":"BF16"},"__metadata__":{"format":"pt"})"
      R"(,"a":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]}}   )",
      "12345678");
  const Result<Layout> layout = Parse(Bytes(file), "a");
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  ASSERT_EQ(layout->tensors.size(), 2U);
  EXPECT_EQ(layout->tensors[0].name, "a");
  EXPECT_EQ(layout->tensors[1].dtype, "BF16");
}

// Whatever the bytes are, the answer is a refusal or a layout that lies within them.
TEST(Safetensors, SurvivesRandomCorruption) {
  const std::string good = SomeFile();
  RandomStream random(20261130);
  int refused = 0;
  constexpr int kTries = 20000;
  for (int i = 0; i < kTries; ++i) {
    std::string file = good;
    const uint64_t changes = 1 + random.Below(4);
    for (uint64_t c = 0; c < changes; ++c) {
      const uint64_t at = random.Below(file.size());
      switch (random.Below(4)) {
        case 0:
          file[at] = static_cast<char>(random.Next());
          break;
        case 1:
          file[at] = static_cast<char>(file[at] ^ (1 << random.Below(8)));
          break;
        case 2:
          file.erase(at, 1 + random.Below(8));
          break;
        default:
          file.insert(at, file.substr(random.Below(file.size()), random.Below(16)));
          break;
      }
      if (file.empty()) break;
    }
    const Result<Layout> layout = Parse(Bytes(file), "a");
    if (!layout.ok()) {
      ++refused;
      continue;
    }
    ASSERT_EQ(layout->data_offset + layout->data_bytes, file.size());
    for (const TensorEntry& tensor : layout->tensors) {
      ASSERT_LE(tensor.begin, tensor.end);
      ASSERT_LE(tensor.end, layout->data_bytes);
    }
  }
  EXPECT_GT(refused, kTries / 2);
}

// Another implementation reads our files: the format as published, in Python's standard library.
TEST(Safetensors, AnIndependentReaderAgrees) {
  if (std::system("/usr/bin/python3 -c pass 2>/dev/null") != 0) {
    GTEST_SKIP() << "no /usr/bin/python3";
  }
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/ours.safetensors";
  std::ofstream(path, std::ios::binary) << SomeFile();
  const std::string script = path + ".py";
  std::ofstream(script) << R"(
import json, struct, sys
raw = open(sys.argv[1], 'rb').read()
size, = struct.unpack('<Q', raw[:8])
assert size <= 100_000_000 and (8 + size) % 8 == 0 and raw[8:9] == b'{'
header = json.loads(raw[8:8 + size].decode('utf-8'))
metadata = header.pop('__metadata__')
assert all(isinstance(v, str) for v in metadata.values())
width = {'F32': 4, 'I64': 8, 'U8': 1}
end = 0
for name, t in sorted(header.items(), key=lambda item: item[1]['data_offsets']):
    count = 1
    for dimension in t['shape']:
        count *= dimension
    assert t['data_offsets'] == [end, end + count * width[t['dtype']]], name
    end = t['data_offsets'][1]
assert end == len(raw) - 8 - size
assert set(header) == {'bytes', 'weight', 'empty', 'count'}
)";
  EXPECT_EQ(std::system(("/usr/bin/python3 " + script + " " + path).c_str()), 0);
}

}  // namespace
}  // namespace muster::safetensors
