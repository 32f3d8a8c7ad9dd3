#include "examples/fashion_mnist/idx_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace fashion_mnist {
namespace {

using muster::StatusCode;

std::string TempPath(const std::string& name) {
  return std::string(std::getenv("TEST_TMPDIR")) + "/" + name;
}

// Two images of 1 x 3 bytes.
const std::string kGood(
    "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"
    "abcdef",
    22);

muster::Result<IdxFile> ReadBack(const std::string& contents) {
  const std::string path = TempPath("file.idx");
  std::ofstream(path, std::ios::binary) << contents;
  return ReadIdxFile(path);
}

TEST(IdxFile, ReadsPlainAndCompressedFiles) {
  const std::string path = TempPath("file.gz");
  const gzFile out = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(out, kGood.data(), static_cast<unsigned>(kGood.size())), 22);
  gzclose(out);
  for (const auto& file : {ReadBack(kGood), ReadIdxFile(path)}) {
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->sizes, (std::vector<uint32_t>{2, 1, 3}));
    EXPECT_EQ(std::string(file->bytes.begin(), file->bytes.end()), "abcdef");
  }
  // A compressed file whose end is damaged: its checksum tells.
  std::ifstream in(path, std::ios::binary);
  std::string compressed((std::istreambuf_iterator<char>(in)), {});
  compressed[compressed.size() - 6] = static_cast<char>(compressed[compressed.size() - 6] ^ 1);
  EXPECT_EQ(ReadBack(compressed).status().code(), StatusCode::kDataLoss);
}

TEST(IdxFile, RefusesEveryCut) {
  for (size_t size = 0; size < kGood.size(); ++size) {
    EXPECT_EQ(ReadBack(kGood.substr(0, size)).status().code(), StatusCode::kDataLoss) << size;
  }
}

TEST(IdxFile, RefusesOtherKindsOfFile) {
  EXPECT_FALSE(ReadBack(kGood + "x").ok());
  EXPECT_FALSE(ReadBack("PNG" + kGood).ok());
  std::string floats = kGood;
  floats[2] = '\x0d';
  EXPECT_FALSE(ReadBack(floats).ok());
  // 2^96 bytes are said to follow.
  EXPECT_FALSE(ReadBack(std::string("\0\0\x08\x03", 4) + std::string(12, '\xff')).ok());
}

TEST(IdxFile, NamesAMissingFile) {
  const auto status = ReadIdxFile(TempPath("none")).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("none"), std::string::npos);
}

}  // namespace
}  // namespace fashion_mnist
