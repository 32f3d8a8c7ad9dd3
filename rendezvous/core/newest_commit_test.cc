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

// Once a node of an earlier world, which had seen more rounds, came to a job that others had begun
// anew, and from then on no commit counted.
TEST(NewestCommit, BesideAnotherWorldTheHigherStepCounts) {
  NewestCommit newest;
  newest.RoundIsFormed(RoundId(1));
  EXPECT_TRUE(newest.Add(At(10), RoundId(1)));
  EXPECT_TRUE(newest.Learn(At(50), RoundId(7)));
  EXPECT_FALSE(newest.Add(At(20), RoundId(1))) << "step 50 is there for the next round";
  EXPECT_EQ(*newest, At(50));
  EXPECT_TRUE(newest.Add(At(60), RoundId(1)));
  EXPECT_FALSE(newest.Learn(At(50), RoundId(7)));
  EXPECT_TRUE(newest.Add(At(70), RoundId(1)));
  EXPECT_EQ(newest.round(), RoundId(1));
  // What is known when a round is formed is what that one goes on from.
  EXPECT_TRUE(newest.Learn(At(80), RoundId(7)));
  newest.RoundIsFormed(RoundId(8));
  EXPECT_TRUE(newest.Add(At(75), RoundId(8))) << "behind a damaged checkpoint";
}

// Rounds of two worlds may have the same number.
TEST(NewestCommit, WhatIsToldAfterARoundWasFormedIsOfAnotherWorldWhateverItsNumber) {
  NewestCommit newest;
  newest.RoundIsFormed(RoundId(1));
  EXPECT_TRUE(newest.Learn(At(50), RoundId(1)));
  EXPECT_FALSE(newest.Add(At(10), RoundId(1)));
  EXPECT_TRUE(newest.Add(At(60), RoundId(1)));
}

// It knew better than those who formed the round, and comes when that is under way.
TEST(NewestCommit, WhoWasInTheRoundBeforeMayStillTellOfALaterStep) {
  NewestCommit newest;
  newest.Learn(At(40), RoundId(5));
  newest.RoundIsFormed(RoundId(6));
  EXPECT_TRUE(newest.Learn(At(60), RoundId(5)));
  EXPECT_FALSE(newest.Add(At(50), RoundId(6)));
  EXPECT_TRUE(newest.Add(At(70), RoundId(6)));
}

TEST(NewestCommit, ARepeatedReportOfWhatARoundBeganWithHoldsNothingUp) {
  NewestCommit newest;
  newest.RoundIsFormed(RoundId(2));
  EXPECT_TRUE(newest.Add(At(50), RoundId(2)));
  newest.RoundIsFormed(RoundId(3));
  EXPECT_FALSE(newest.Learn(At(50), RoundId(3)));
  EXPECT_TRUE(newest.Add(At(40), RoundId(3)));
  EXPECT_FALSE(newest.Learn(At(50), RoundId(3)));
  EXPECT_EQ(*newest, At(40));
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
