#include "launcher/ssh/ssh_outcome.h"

#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

SshPlan Plan() {
  SshPlan plan;
  plan.remote_muster = "/opt/muster";
  return plan;
}
const SshHost kHost{.name = "b"};
const SshHost kHere{.name = "localhost", .is_local = true};

HostEnd Told(int code) { return {.job_code = code, .has_greeted = true, .status = code}; }
HostEnd Lost() { return {.has_greeted = true, .status = 255}; }
const HostFailure kFailure{69, "lost"};

TEST(ExplainEnd, NamesHostCauseAndRemedy) {
  HostFailure failure = ExplainEnd(kHost, Plan(), "ssh -p 2222",
                                   {.status = 255, .words = "Permission denied (publickey)."});
  EXPECT_EQ(failure.exit_code, 69);
  EXPECT_THAT(failure.text, AllOf(HasSubstr("host b can't be reached"),
                                  HasSubstr("\"Permission denied (publickey).\""),
                                  HasSubstr("`ssh -p 2222 b true`")));

  failure = ExplainEnd(kHost, Plan(), "ssh", {.status = 127, .words = "sh: 1: not found"});
  EXPECT_EQ(failure.exit_code, 127);
  EXPECT_THAT(failure.text, AllOf(HasSubstr("host b: no muster"), HasSubstr("/opt/muster"),
                                  HasSubstr("--remote-muster")));

  failure = ExplainEnd(kHost, Plan(), "ssh", {.status = 64, .words = "muster: unknown command"});
  EXPECT_THAT(failure.text, AllOf(HasSubstr("host b"), HasSubstr("code 64"),
                                  HasSubstr("\"muster: unknown command\"")));

  failure = ExplainEnd(kHost, Plan(), "ssh", Lost());
  EXPECT_EQ(failure.exit_code, 69);
  EXPECT_THAT(failure.text, HasSubstr("the connection was lost"));

  failure = ExplainEnd(kHere, Plan(), "ssh", {.has_greeted = true, .status = 137});
  EXPECT_THAT(failure.text, HasSubstr("ended with code 137"));
}

TEST(CheckVersion, NamesBoth) {
  EXPECT_FALSE(CheckVersion(kHost, Plan(), "0.1.0"));
  auto failure = CheckVersion(kHost, Plan(), "9.9.9");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code, 78);
  EXPECT_THAT(failure->text, AllOf(HasSubstr("host b has muster 9.9.9"), HasSubstr("0.1.0")));
}

TEST(SshOutcome, IsTheVerdictOfAll) {
  SshOutcome outcome(2, 2);
  EXPECT_EQ(outcome.OnEnd(Told(3), std::nullopt), Others::kShouldEnd);
  EXPECT_EQ(outcome.OnEnd(Told(3), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.ExitCode(), 3);
}

TEST(SshOutcome, SuccessOfOneIsTheJobs) {
  // The other one was drained.
  SshOutcome outcome(2, 1);
  EXPECT_EQ(outcome.OnEnd(Told(75), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.OnEnd(Told(0), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.ExitCode(), 0);
}

TEST(SshOutcome, WhoSucceedsFirstWaitsForTheOthers) {
  SshOutcome outcome(2, 2);
  EXPECT_EQ(outcome.OnEnd(Told(0), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.running(), 1);
}

TEST(SshOutcome, ARefusedHostIsAloneWithThat) {
  SshOutcome outcome(2, 2);
  EXPECT_EQ(outcome.OnEnd(Told(78), std::nullopt), Others::kMustEnd);
  outcome.OnOwnStop(78);
  EXPECT_EQ(outcome.ExitCode(), 78);
}

TEST(SshOutcome, AfterADrainTheVerdictCounts) {
  SshOutcome outcome(3, 2);
  EXPECT_EQ(outcome.OnEnd(Told(75), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.OnEnd(Told(7), std::nullopt), Others::kShouldEnd);
  EXPECT_EQ(outcome.OnEnd(Told(7), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.ExitCode(), 7);
}

TEST(SshOutcome, ALostHostEndsTheOthersOnlyIfTheyAreTooFew) {
  SshOutcome outcome(3, 2);
  EXPECT_EQ(outcome.OnEnd(Lost(), kFailure), Others::kGoOn);
  EXPECT_EQ(outcome.OnEnd(Lost(), kFailure), Others::kMustEnd);
  outcome.OnOwnStop(69);
  EXPECT_TRUE(outcome.is_own_stop());
  EXPECT_EQ(outcome.OnEnd(Told(143), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.ExitCode(), 69);
}

TEST(SshOutcome, AHostThatCannotBeginEndsTheOthers) {
  SshOutcome outcome(2, 2);
  HostEnd end = Told(127);
  end.has_problem = true;
  EXPECT_EQ(outcome.OnEnd(end, std::nullopt), Others::kMustEnd);
  outcome.OnOwnStop(127);
  EXPECT_EQ(outcome.OnEnd(Told(143), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.ExitCode(), 127);
}

TEST(SshOutcome, ASignalGivesWhatTheHostsSayOfIt) {
  SshOutcome outcome(2, 2);
  outcome.OnSignal(SIGINT);
  EXPECT_EQ(outcome.OnEnd(Told(130), std::nullopt), Others::kGoOn);
  EXPECT_EQ(outcome.OnEnd(Lost(), kFailure), Others::kGoOn);
  EXPECT_EQ(outcome.ExitCode(), 130);

  // Whoever heard of the other's leave first calls it so.
  for (int last : {75, 130}) {
    SshOutcome raced(2, 2);
    raced.OnSignal(SIGINT);
    raced.OnEnd(Told(75 + 130 - last), std::nullopt);
    raced.OnEnd(Told(last), std::nullopt);
    EXPECT_EQ(raced.ExitCode(), 130);
  }
  // Unless all of them could save.
  SshOutcome saved(2, 2);
  saved.OnSignal(SIGTERM);
  saved.OnEnd(Told(75), std::nullopt);
  saved.OnEnd(Told(75), std::nullopt);
  EXPECT_EQ(saved.ExitCode(), 75);

  SshOutcome silent(1, 1);
  silent.OnSignal(SIGTERM);
  EXPECT_EQ(silent.OnEnd(Lost(), kFailure), Others::kGoOn);
  EXPECT_EQ(silent.ExitCode(), 143);
}

TEST(SshOutcome, NeverEndsWithSuccessIfAllWereLost) {
  SshOutcome outcome(1, 1);
  EXPECT_EQ(outcome.OnEnd(Lost(), kFailure), Others::kGoOn);
  EXPECT_EQ(outcome.ExitCode(), 69);
}

}  // namespace
}  // namespace muster::launcher
