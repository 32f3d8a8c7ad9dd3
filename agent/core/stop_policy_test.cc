#include "agent/core/stop_policy.h"

#include <csignal>
#include <vector>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

constexpr StopPlan kKill{SIGKILL, Duration(0)};

TEST(StopPolicy, TheCauseDecidesHowHard) {
  struct Row {
    StopCause cause;
    StopTimes times;
    StopPlan plan;
  };
  const StopTimes usual{seconds(30), seconds(0)};
  const StopTimes patient{seconds(30), seconds(5)};
  const StopTimes hasty{seconds(0), seconds(0)};
  const std::vector<Row> rows = {
      {StopCause::kWorkerFailed, usual, {SIGTERM, seconds(30)}},
      {StopCause::kMembership, usual, {SIGTERM, seconds(30)}},
      {StopCause::kJobEnding, usual, {SIGTERM, seconds(30)}},
      {StopCause::kPeerLost, usual, kKill},
      {StopCause::kPeerLost, patient, {SIGTERM, seconds(5)}},
      {StopCause::kSuperseded, patient, kKill},
      {StopCause::kWorkerFailed, hasty, kKill},
      // Of a version that knows more causes.
      {static_cast<StopCause>(99), usual, {SIGTERM, seconds(30)}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(PlanStop(row.cause, row.times), row.plan) << static_cast<int>(row.cause);
  }
}

TEST(StopPolicy, AUsersSignalIsPassedOnAndTheSecondKills) {
  const StopTimes times{seconds(30), seconds(0)};
  EXPECT_EQ(PlanUserStop(SIGINT, false, times), (StopPlan{SIGINT, seconds(30)}));
  EXPECT_EQ(PlanUserStop(SIGINT, true, times), kKill);
}

TEST(StopPolicy, WhatSucceededWorkersLeftGetsTheNormalGrace) {
  EXPECT_EQ(PlanSweepAfterSuccess({seconds(30), seconds(0)}), (StopPlan{SIGTERM, seconds(30)}));
}

TEST(StopPolicy, OnlyAShorterGraceIsHarder) {
  EXPECT_TRUE(IsHarder(kKill, {SIGTERM, seconds(30)}));
  EXPECT_FALSE(IsHarder({SIGTERM, seconds(30)}, {SIGTERM, seconds(30)}));
  EXPECT_FALSE(IsHarder({SIGINT, seconds(30)}, kKill));
}

}  // namespace
}  // namespace muster::agent
