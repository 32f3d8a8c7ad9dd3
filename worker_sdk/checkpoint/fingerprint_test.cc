#include "worker_sdk/checkpoint/fingerprint.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(Fingerprint, DoesntDependOnThePieces) {
  const std::string text(1000, 'x');
  Fingerprint pieces;
  pieces.Add(text.data(), 1);
  pieces.Add(nullptr, 0);
  pieces.Add(text.data() + 1, 699);
  pieces.Add(text.data() + 700, 300);
  EXPECT_EQ(pieces.value(), Fingerprint::Of(text.data(), text.size()));
  EXPECT_EQ(Fingerprint().value(), Fingerprint::Of(nullptr, 0));
}

// XXH3's published value of no bytes: what is stored must be readable by later versions.
TEST(Fingerprint, IsXxh3) { EXPECT_EQ(Fingerprint().ToHex(), "2d06800538d394c2"); }

TEST(Fingerprint, ReadsBackOnlyWhatItWrote) {
  uint64_t value = 0;
  ASSERT_TRUE(Fingerprint::ParseHex("00000000deadbeef", &value));
  EXPECT_EQ(value, 0xdeadbeefU);
  EXPECT_EQ(Fingerprint::Hex(value), "00000000deadbeef");
  for (const char* bad : {"", "deadbeef", "00000000DEADBEEF", "00000000deadbeeg",
                          "00000000deadbeef0", " 0000000deadbeef"}) {
    EXPECT_FALSE(Fingerprint::ParseHex(bad, &value)) << bad;
  }
  EXPECT_EQ(value, 0xdeadbeefU);
}

}  // namespace
}  // namespace muster
