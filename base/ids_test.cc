#include "base/ids.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(RandomId, HexGoesThereAndBack) {
  Incarnation id;
  for (size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<uint8_t>(17 * i + 3);
  EXPECT_EQ(Incarnation::FromHex(id.ToHex()), id);
  EXPECT_EQ(id.ToHex().size(), 32u);
}

TEST(RandomId, TextThatIsNotExactlyItsDigitsIsNone) {
  EXPECT_TRUE(WorldId::FromHex("").IsNone());
  EXPECT_TRUE(WorldId::FromHex(std::string(31, 'a')).IsNone());
  EXPECT_TRUE(WorldId::FromHex(std::string(31, 'a') + "g").IsNone());
  EXPECT_FALSE(WorldId::FromHex(std::string(32, 'F')).IsNone());
}

TEST(StrongInt, ComparesByValue) {
  EXPECT_LT(RoundId(1), RoundId(2));
  EXPECT_EQ(Rank(3), Rank(3));
  EXPECT_EQ(RoundId().value, 0u);
}

}  // namespace
}  // namespace muster
