#include "rendezvous/core/agreement.h"

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using State = Agreement::State;

TEST(Agreement, GoesOnlyForward) {
  Agreement agreement;
  EXPECT_EQ(agreement.state(), State::kNone);
  agreement.Want();
  EXPECT_EQ(agreement.state(), State::kWanted);
  EXPECT_TRUE(agreement.Name(7, 2));
  agreement.Want();
  EXPECT_EQ(agreement.state(), State::kNamed);
  EXPECT_FALSE(agreement.Know(0, 7));
  EXPECT_TRUE(agreement.Know(1, 7));
  EXPECT_EQ(agreement.state(), State::kKnown);
  EXPECT_TRUE(agreement.Save(7));
  EXPECT_EQ(agreement.state(), State::kSaved);
  EXPECT_FALSE(agreement.Save(8));
}

TEST(Agreement, RepetitionsCountOnce) {
  Agreement agreement;
  EXPECT_TRUE(agreement.Name(7, 2)) << "a rendezvous that restarted hears of it like this";
  EXPECT_FALSE(agreement.Name(7, 2));
  EXPECT_FALSE(agreement.Know(0, 7));
  EXPECT_FALSE(agreement.Know(0, 7));
  EXPECT_EQ(agreement.state(), State::kNamed);
}

TEST(Agreement, WhatBelongsToAnotherStepIsNone) {
  Agreement agreement;
  EXPECT_FALSE(agreement.Name(-1, 1));
  EXPECT_FALSE(agreement.Know(0, -1));
  EXPECT_TRUE(agreement.Name(7, 1));
  EXPECT_FALSE(agreement.Know(0, 6));
  EXPECT_FALSE(agreement.Know(1, 7)) << "no such node";
  EXPECT_FALSE(agreement.Save(7)) << "not all know";
  EXPECT_TRUE(agreement.Know(0, 7));
  EXPECT_FALSE(agreement.Save(6));
  // A program that counts in tens saves at the first step that isn't before the agreed one.
  EXPECT_TRUE(agreement.Save(10));
}

TEST(Agreement, ANewerStepBeginsAnew) {
  Agreement agreement;
  agreement.Name(7, 1);
  agreement.Know(0, 7);
  EXPECT_TRUE(agreement.Name(9, 1));
  EXPECT_EQ(agreement.state(), State::kNamed);
  EXPECT_FALSE(agreement.Know(0, 7));
}

}  // namespace
}  // namespace muster::rendezvous
