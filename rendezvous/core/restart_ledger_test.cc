#include "rendezvous/core/restart_ledger.h"

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

JobTerms Terms(int max_restarts = 100) {
  JobTerms terms;
  terms.max_restarts = max_restarts;
  return terms;
}

// A round that lived for a minute.
RestartLedger::RoundEnd End(int64_t last_step = -1, int culprit = 0) {
  return {.at = Instant(seconds(1000)),
          .uptime = minutes(1),
          .last_step = last_step,
          .culprit = Rank(culprit)};
}

RestartLedger::RoundEnd EarlyEnd() {
  RestartLedger::RoundEnd end = End();
  end.uptime = std::chrono::milliseconds(999);
  return end;
}

RestartLedger::RoundEnd EndAt(Duration at) {
  RestartLedger::RoundEnd end = End();
  end.at = Instant(at);
  return end;
}

TEST(RestartLedger, EachFailureTakesOneRestartUntilNoneIsLeft) {
  RestartLedger ledger;
  EXPECT_TRUE(ledger.Charge(Terms(2), End()).may_restart);
  EXPECT_EQ(ledger.charged(), 1);
  EXPECT_TRUE(ledger.Charge(Terms(2), End()).may_restart);
  const RestartLedger::Answer answer = ledger.Charge(Terms(2), End());
  EXPECT_FALSE(answer.may_restart);
  EXPECT_EQ(answer.reason, "all 2 restarts of --max-restarts are used up");
  EXPECT_EQ(ledger.charged(), 2) << "what is refused is not charged";
}

TEST(RestartLedger, OneRestartIsNotSeveral) {
  RestartLedger ledger;
  EXPECT_TRUE(ledger.Charge(Terms(1), End()).may_restart);
  EXPECT_EQ(ledger.Charge(Terms(1), End()).reason,
            "the one restart of --max-restarts=1 is used up");
  JobTerms hourly = Terms();
  hourly.max_restarts_per_hour = 1;
  RestartLedger other;
  EXPECT_TRUE(other.Charge(hourly, EndAt(minutes(0))).may_restart);
  EXPECT_EQ(other.Charge(hourly, EndAt(minutes(1)))
                .reason.find("it was restarted once within the last hour"),
            0u);
}

TEST(RestartLedger, NoRestartsAreLeftFromNone) {
  RestartLedger ledger;
  const RestartLedger::Answer answer = ledger.Charge(Terms(0), End());
  EXPECT_FALSE(answer.may_restart);
  EXPECT_EQ(answer.reason, "--max-restarts is 0, so it was not restarted");
  EXPECT_EQ(ledger.charged(), 0);
}

TEST(RestartLedger, TheHighestReportOfAnAgentCounts) {
  RestartLedger ledger;
  ledger.LearnCharged(2);
  ledger.LearnCharged(1);
  EXPECT_EQ(ledger.charged(), 2);
  EXPECT_FALSE(ledger.Charge(Terms(2), End()).may_restart);
}

// ---- within an hour ------------------------------------------------------------------------

TEST(RestartLedger, NoMoreRestartsThanAllowedWithinAnyHour) {
  JobTerms terms = Terms();
  terms.max_restarts_per_hour = 2;
  RestartLedger ledger;
  EXPECT_TRUE(ledger.Charge(terms, EndAt(minutes(0))).may_restart);
  EXPECT_TRUE(ledger.Charge(terms, EndAt(minutes(30))).may_restart);
  // The first is an hour old, the second isn't: one more is allowed, and then none.
  EXPECT_TRUE(ledger.Charge(terms, EndAt(minutes(60))).may_restart);
  const RestartLedger::Answer answer = ledger.Charge(terms, EndAt(minutes(89)));
  EXPECT_FALSE(answer.may_restart);
  EXPECT_EQ(answer.reason,
            "it was restarted 2 times within the last hour, which is all that "
            "--max-restarts-per-hour=2 allows; mend the cause, or allow more");
  EXPECT_EQ(ledger.charged(), 3);
}

TEST(RestartLedger, WithoutALimitPerHourTheBudgetAloneCounts) {
  RestartLedger ledger;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(ledger.Charge(Terms(), EndAt(seconds(i))).may_restart);
  }
  EXPECT_FALSE(ledger.Charge(Terms(), EndAt(seconds(100))).may_restart);
}

// ---- a program that never lived ------------------------------------------------------------

TEST(RestartLedger, AProgramThatNeverLivedIsNotStartedForEver) {
  JobTerms terms = Terms();
  terms.max_early_failures = 3;
  RestartLedger ledger;
  EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
  EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
  const RestartLedger::Answer answer = ledger.Charge(terms, EarlyEnd());
  EXPECT_FALSE(answer.may_restart);
  EXPECT_EQ(answer.reason,
            "no round has lived 1 s (--min-uptime) and 3 in a row failed (--max-early-failures=3), "
            "so it was not started again; see that the program can run at all");
}

TEST(RestartLedger, AProgramThatLivedOnceMayFailEarlyAfterwards) {
  JobTerms terms = Terms();
  terms.max_early_failures = 2;
  RestartLedger ledger;
  EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
  EXPECT_TRUE(ledger.Charge(terms, End()).may_restart);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
}

TEST(RestartLedger, ARoundThatAMembershipChangeEndedShowsThatTheProgramLives) {
  JobTerms terms = Terms();
  terms.max_early_failures = 2;
  RestartLedger ledger;
  EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
  ledger.Pass(terms, End());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
}

TEST(RestartLedger, AMembershipChangeBreaksTheRowOfEarlyFailures) {
  JobTerms terms = Terms();
  terms.max_early_failures = 2;
  RestartLedger ledger;
  EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
  ledger.Pass(terms, EarlyEnd());
  EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
  EXPECT_FALSE(ledger.Charge(terms, EarlyEnd()).may_restart);
}

TEST(RestartLedger, AProgramThatCompletedAStepHasLived) {
  JobTerms terms = Terms();
  terms.max_early_failures = 1;
  RestartLedger ledger;
  RestartLedger::RoundEnd end = EarlyEnd();
  end.last_step = 0;
  EXPECT_TRUE(ledger.Charge(terms, end).may_restart);
  EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
}

TEST(RestartLedger, WhatARecoveredRoundLivedIsUnknownAndNotHeldAgainstIt) {
  JobTerms terms = Terms();
  terms.max_early_failures = 1;
  RestartLedger ledger;
  RestartLedger::RoundEnd end = EarlyEnd();
  end.is_recovered = true;
  EXPECT_TRUE(ledger.Charge(terms, end).may_restart);
  EXPECT_FALSE(ledger.Charge(terms, EarlyEnd()).may_restart);
}

TEST(RestartLedger, ZeroSwitchesTheRuleOnEarlyFailuresOff) {
  JobTerms terms = Terms();
  RestartLedger ledger;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(ledger.Charge(terms, EarlyEnd()).may_restart);
  terms.max_early_failures = 1;
  terms.min_uptime = Duration(0);
  RestartLedger other;
  EXPECT_TRUE(other.Charge(terms, EarlyEnd()).may_restart) << "everything lives for no time at all";
}

// ---- no progress ---------------------------------------------------------------------------

JobTerms StuckTerms(int max_stuck_restarts) {
  JobTerms terms = Terms();
  terms.max_stuck_restarts = max_stuck_restarts;
  return terms;
}

TEST(RestartLedger, AJobThatFailsAtTheSameStepEveryTimeIsStopped) {
  RestartLedger ledger;
  const JobTerms terms = StuckTerms(2);
  EXPECT_TRUE(ledger.Charge(terms, End(120, 3)).may_restart);
  EXPECT_TRUE(ledger.Charge(terms, End(120, 3)).may_restart) << "one restart ended there";
  const RestartLedger::Answer answer = ledger.Charge(terms, End(120, 3));
  EXPECT_FALSE(answer.may_restart);
  EXPECT_EQ(
      answer.reason,
      "rank 3 failed at step 120 in each of the last 3 rounds (--max-stuck-restarts=2), so it "
      "was not started again; find what fails after that step");
  EXPECT_EQ(ledger.charged(), 2);
}

TEST(RestartLedger, TheRankIsNamedOnlyIfItIsAlwaysTheSame) {
  RestartLedger ledger;
  const JobTerms terms = StuckTerms(2);
  ledger.Charge(terms, End(120, 3));
  ledger.Charge(terms, End(120, 1));
  const RestartLedger::Answer answer = ledger.Charge(terms, End(120, 3));
  EXPECT_FALSE(answer.may_restart);
  EXPECT_EQ(answer.reason,
            "each of the last 3 rounds ended at step 120 (--max-stuck-restarts=2), so it was not "
            "started again; find what fails after that step");
}

TEST(RestartLedger, AJobThatGetsFurtherIsNeverStuck) {
  RestartLedger ledger;
  const JobTerms terms = StuckTerms(1);
  for (int step = 0; step < 50; ++step) {
    EXPECT_TRUE(ledger.Charge(terms, End(step)).may_restart) << step;
  }
}

TEST(RestartLedger, AJobThatReportsNoStepsIsNeverStuck) {
  RestartLedger ledger;
  const JobTerms terms = StuckTerms(1);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(ledger.Charge(terms, End(-1)).may_restart);
}

TEST(RestartLedger, AFreeRoundThatGotFurtherOrANewCommitBreaksTheRow) {
  const JobTerms terms = StuckTerms(1);
  RestartLedger ledger;
  ledger.Charge(terms, End(120));
  ledger.Pass(terms, End(130));
  EXPECT_TRUE(ledger.Charge(terms, End(120)).may_restart);
  ledger.Committed(119);
  EXPECT_TRUE(ledger.Charge(terms, End(120)).may_restart);
  // Neither of these is progress.
  ledger.Pass(terms, End(60));
  ledger.Committed(119);
  EXPECT_FALSE(ledger.Charge(terms, End(120)).may_restart);
}

TEST(RestartLedger, OfSeveralReasonsTheOneThatSaysMostIsGiven) {
  JobTerms terms = Terms(1);
  terms.max_stuck_restarts = 1;
  terms.max_restarts_per_hour = 1;
  RestartLedger ledger;
  EXPECT_TRUE(ledger.Charge(terms, End(7)).may_restart);
  EXPECT_NE(ledger.Charge(terms, End(7)).reason.find("at step 7"), std::string::npos);
}

}  // namespace
}  // namespace muster::rendezvous
