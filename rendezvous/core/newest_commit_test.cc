#include "rendezvous/core/newest_commit.h"

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

Commit At(int64_t step) { return {step, "/c/" + std::to_string(step)}; }

TEST(NewestCommit, KnowsNothingAtFirst) {
  NewestCommit newest;
  EXPECT_FALSE(newest.Learn(std::nullopt, RoundId(3)));
  EXPECT_FALSE(newest.has_value());
}

TEST(NewestCommit, WhoSawALaterRoundKnowsBetterWhateverTheStep) {
  NewestCommit newest;
  newest.Learn(At(50), RoundId(2));
  EXPECT_TRUE(newest.Learn(At(40), RoundId(3)));
  EXPECT_EQ(newest->step, 40);
  EXPECT_FALSE(newest.Learn(At(90), RoundId(2)));
  EXPECT_FALSE(newest.Learn(At(40), RoundId(3))) << "known";
  EXPECT_EQ(*newest, At(40));
  EXPECT_EQ(newest.round(), RoundId(3));
}

TEST(NewestCommit, OfOneRoundTheHigherStepIsNewer) {
  NewestCommit newest;
  newest.Learn(At(50), RoundId(2));
  newest.Learn(At(60), RoundId(2));
  newest.Learn(At(55), RoundId(2));
  EXPECT_EQ(newest->step, 60);
}

TEST(NewestCommit, NobodyKnowsBetterOfARoundThanWhoeverCommittedInIt) {
  NewestCommit newest;
  EXPECT_TRUE(newest.Add(At(50), RoundId(2)));
  newest.Learn(At(60), RoundId(2));
  EXPECT_EQ(newest->step, 50) << "of another world with that number";
  newest.Learn(At(60), RoundId(3));
  EXPECT_EQ(newest->step, 60);
}

TEST(NewestCommit, ARoundMayGoBackButARoundItselfDoesNot) {
  NewestCommit newest;
  EXPECT_TRUE(newest.Add(At(50), RoundId(2)));
  EXPECT_TRUE(newest.Add(At(40), RoundId(3))) << "behind a damaged checkpoint";
  EXPECT_FALSE(newest.Add(At(40), RoundId(3)));
  EXPECT_FALSE(newest.Add(At(30), RoundId(3)));
  EXPECT_FALSE(newest.Add(At(99), RoundId(2))) << "that round is over";
  EXPECT_EQ(newest->step, 40);
}

}  // namespace
}  // namespace muster::rendezvous
