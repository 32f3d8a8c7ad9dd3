#include "agent/core/input_choice.h"

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

using Kind = InputChoice::Kind;

TEST(InputChoice, OneReadsOrNobodyUnlessAllShall) {
  const struct {
    InputChoice choice;
    Rank rank;
    bool is_alone;
    bool gets_input;
  } kCases[] = {
      {{}, Rank(0), true, true},
      {{}, Rank(0), false, false},
      {{.kind = Kind::kNone}, Rank(0), true, false},
      {{.kind = Kind::kRank, .rank = Rank(3)}, Rank(3), false, true},
      {{.kind = Kind::kRank, .rank = Rank(3)}, Rank(0), true, false},
      {{.kind = Kind::kAll}, Rank(7), false, true},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(GetsInput(c.choice, c.rank, c.is_alone), c.gets_input)
        << static_cast<int>(c.choice.kind) << " " << c.rank.value;
  }
}

}  // namespace
}  // namespace muster::agent
