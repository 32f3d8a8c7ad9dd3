#include "worker_sdk/context/peer_waits.h"

#include <gtest/gtest.h>

#include <utility>

namespace muster {
namespace {

using Kind = Activity::Kind;

TEST(PeerWaits, WithoutAGroupOnlyAWaitIsKnown) {
  PeerWaits waits;
  EXPECT_EQ(waits.activity().kind, Kind::kUnknown);
  {
    PeerWaits::Wait wait(&waits);
    EXPECT_EQ(waits.activity().kind, Kind::kWaits);
  }
  EXPECT_EQ(waits.activity().kind, Kind::kUnknown);
}

TEST(PeerWaits, AGroupThatWaitsForNobodyRunsItsOwnCode) {
  PeerWaits waits;
  waits.GroupMade();
  waits.GroupMade();
  EXPECT_EQ(waits.activity().kind, Kind::kOwnCode);
  waits.GroupLeft();
  EXPECT_EQ(waits.activity().kind, Kind::kOwnCode);
  waits.GroupLeft();
  EXPECT_EQ(waits.activity().kind, Kind::kUnknown);
}

TEST(PeerWaits, ItWaitsUntilTheLastWaitIsOver) {
  PeerWaits waits;
  waits.GroupMade();
  PeerWaits::Wait kept;
  {
    PeerWaits::Wait first(&waits);
    PeerWaits::Wait second(&waits);
    kept = std::move(second);
    EXPECT_EQ(waits.activity().kind, Kind::kWaits);
  }
  EXPECT_EQ(waits.activity().kind, Kind::kWaits);
  PeerWaits::Wait moved(std::move(kept));
  EXPECT_EQ(waits.activity().kind, Kind::kWaits);
  moved = PeerWaits::Wait();
  EXPECT_EQ(waits.activity().kind, Kind::kOwnCode);
}

TEST(PeerWaits, AWaitThatNobodyAsksForIsNone) {
  PeerWaits::Wait wait(nullptr);
  PeerWaits::Wait moved(std::move(wait));
}

TEST(PeerWaits, WhatLastsBeginsAnewWithEachWait) {
  PeerWaits waits;
  waits.GroupMade();
  Activity first = waits.activity();
  EXPECT_GE(first.lasted, Duration(0));
  while (waits.activity().lasted < std::chrono::milliseconds(2)) {
  }
  Activity later = waits.activity();
  EXPECT_GT(later.lasted, first.lasted);
  auto began = std::chrono::steady_clock::now();
  PeerWaits::Wait wait(&waits);
  Activity waiting = waits.activity();
  EXPECT_LE(waiting.lasted, std::chrono::steady_clock::now() - began);
}

}  // namespace
}  // namespace muster
