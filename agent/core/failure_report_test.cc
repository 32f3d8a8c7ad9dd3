#include "agent/core/failure_report.h"

#include <cstdlib>
#include <string>

#include "base/signal_name.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

WorkerFailure Failure(int rank, WorkerExit exit) {
  WorkerFailure failure;
  failure.rank = Rank(rank);
  failure.local_rank = LocalRank(rank % 2);
  failure.node_name = "n1";
  failure.pid = 1000 + rank;
  failure.exit = exit;
  failure.wall_time_s = 1700000000;
  return failure;
}

class FailureReportTest : public testing::Test {
 protected:
  FailureReportTest() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(FailureReportTest, HasTorchrunsLayout) {
  Verdict verdict;
  verdict.failures = {Failure(3, {.code = 2})};
  EXPECT_EQ(
      FailureReport("train.py", verdict),
      R"(==========================================================================================
train.py FAILED
------------------------------------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2023-11-14_22:13:20
  host      : n1
  rank      : 3 (local_rank: 1)
  exitcode  : 2 (pid: 1003)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
==========================================================================================)");
}

TEST_F(FailureReportTest, NamesSignalsFollowersLogAndLastLines) {
  Verdict verdict;
  WorkerFailure root = Failure(0, {.signal = 9});
  root.log_path = "/logs/0/stderr.log";
  root.stderr_tail = "almost done\noops\n";
  WorkerFailure follower = Failure(1, {.code = 1});
  follower.error_file = "/logs/1/error.json";
  follower.message = "Traceback:\n  peer lost";
  root.age = std::chrono::milliseconds(250);
  follower.age = std::chrono::milliseconds(238);
  verdict.failures = {root, follower};
  std::string report = FailureReport("a.out", verdict);
  EXPECT_NE(report.find("  exitcode  : -9 (pid: 1000)  (SIGKILL)\n"), std::string::npos);
  EXPECT_NE(report.find("  traceback : Signal 9 (SIGKILL) received by PID 1000, sent from outside "
                        "muster, the sender is unknown\n"
                        "  log       : /logs/0/stderr.log\n"
                        "  last lines of stderr:\n"
                        "    almost done\n"
                        "    oops\n"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("Failures:\n[1]:\n"), std::string::npos);
  EXPECT_NE(report.find("  error_file: /logs/1/error.json\n"
                        "  follower  : 12 ms after rank 0\n"
                        "  traceback : Traceback:\n"
                        "    peer lost\n"),
            std::string::npos)
      << report;
}

TEST_F(FailureReportTest, SaysTheCauseAndWhereItsTracesAre) {
  Verdict verdict;
  WorkerFailure root = Failure(0, {.signal = 9});
  root.hung = true;
  root.evidence = "it made no step for 5 s after step 12";
  root.last_step = 12;
  root.stacks_file = "/logs/0/stacks.txt";
  WorkerFailure follower = Failure(1, {.signal = 6, .dumped_core = true});
  follower.core_file = "/cores/core.1001";
  verdict.failures = {root, follower};
  std::string report = FailureReport("a.out", verdict);
  EXPECT_NE(report.find("  cause     : it made no step for 5 s after step 12\n"
                        "  last step : 12\n"
                        "  stacks    : /logs/0/stacks.txt\n"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("Signal 6 (SIGABRT) received by PID 1001 (core dumped)\n"
                        "  core file : /cores/core.1001\n"),
            std::string::npos)
      << report;
  // Followers come before the section of the root cause, as torchrun has it.
  EXPECT_LT(report.find("core file"), report.find("Root Cause"));
  EXPECT_LT(report.find("Root Cause"), report.find("last step"));
}

TEST_F(FailureReportTest, ATracebackIsShownOnce) {
  Verdict verdict;
  verdict.failures = {Failure(0, {.code = 1})};
  verdict.failures[0].message = "Traceback:\n  File x\nValueError: no";
  verdict.failures[0].stderr_tail = "epoch 1\nTraceback:\n  File x\nValueError: no\n";
  std::string report = FailureReport("a.py", verdict);
  EXPECT_EQ(report.find("last lines of stderr"), std::string::npos) << report;
  EXPECT_EQ(report.find("ValueError"), report.rfind("ValueError"));
  verdict.failures[0].stderr_tail = "CUDA error: no memory\n";
  EXPECT_NE(FailureReport("a.py", verdict).find("CUDA error"), std::string::npos);
}

TEST_F(FailureReportTest, ManyFollowersAreCounted) {
  Verdict verdict;
  for (int i = 0; i < 40; ++i) verdict.failures.push_back(Failure(i, {.code = 1}));
  std::string report = FailureReport("a.out", verdict);
  EXPECT_NE(report.find("[16]:"), std::string::npos);
  EXPECT_EQ(report.find("[17]:"), std::string::npos);
  EXPECT_NE(report.find("  ... and 23 more\n"), std::string::npos);
}

TEST_F(FailureReportTest, IsEmptyWhereNoWorkerIsTheCause) {
  Verdict verdict;
  verdict.reason = "the rendezvous can't be reached";
  EXPECT_EQ(FailureReport("a.out", verdict), "");
}

TEST_F(FailureReportTest, WhatFailedBeforeAHopelessProgramIsNoFollower) {
  Verdict verdict;
  verdict.failures = {Failure(0, {.code = 127}), Failure(1, {.code = 1})};
  verdict.failures[1].age = std::chrono::milliseconds(5);
  std::string report = FailureReport("a.out", verdict);
  EXPECT_NE(report.find("  follower  : no, it failed 5 ms before\n"), std::string::npos) << report;
}

TEST(FailureLine, TellsSignalsFromOutsideFromAProgramsOwn) {
  for (int signal : {1, 2, 3, 9, 10, 12, 15}) {
    EXPECT_TRUE(FailureLine(Failure(0, {.signal = signal})).ends_with("the sender is unknown"))
        << signal;
  }
  for (int signal : {4, 6, 7, 8, 11, 13, 14, 24, 31}) {
    EXPECT_TRUE(FailureLine(Failure(0, {.signal = signal})).ends_with(")")) << signal;
  }
}

TEST(FailureLine, SaysHowAWorkerEnded) {
  EXPECT_EQ(FailureLine(Failure(3, {.code = 2})),
            "rank 3 (local rank 1, pid 1003, node n1) exited with code 2");
  EXPECT_EQ(
      FailureLine(Failure(2, {.signal = 11, .dumped_core = true})),
      "rank 2 (local rank 0, pid 1002, node n1) was ended by signal 11 (SIGSEGV), core dumped");
  WorkerFailure never = Failure(0, {.code = 127});
  never.pid = 0;
  never.failed_to_start = true;
  never.message = "'nope' can't be executed: No such file or directory";
  EXPECT_EQ(
      FailureLine(never),
      "rank 0 (local rank 0, node n1) could not be started: 'nope' can't be executed: No such "
      "file or directory");
}

TEST(FailureLine, SaysTheEvidence) {
  WorkerFailure killed = Failure(2, {.signal = 9});
  killed.out_of_memory = true;
  killed.evidence = "the kernel killed it for want of memory";
  EXPECT_EQ(FailureLine(killed),
            "rank 2 (local rank 0, pid 1002, node n1) was ended by signal 9 (SIGKILL): the kernel "
            "killed it for want of memory");
  killed.hung = true;
  killed.evidence = "it made no step for 5 s";
  EXPECT_EQ(
      FailureLine(killed),
      "rank 2 (local rank 0, pid 1002, node n1) hung and was killed: it made no step for 5 s");
  killed.only_waited = true;
  EXPECT_EQ(FailureLine(killed),
            "rank 2 (local rank 0, pid 1002, node n1) only waited for other ranks and was killed, "
            "since no rank was found that hangs: it made no step for 5 s");
}

TEST(SignalName, NamesWhatHasAName) {
  EXPECT_EQ(SignalName(9), "SIGKILL");
  EXPECT_EQ(SignalName(15), "SIGTERM");
  EXPECT_EQ(SignalName(31), "SIGSYS");
  EXPECT_EQ(SignalName(34), "SIGRTMIN");
  EXPECT_EQ(SignalName(40), "SIGRTMIN+6");
  EXPECT_EQ(SignalName(99), "signal 99");
  EXPECT_EQ(SignalName(0), "signal 0");
}

}  // namespace
}  // namespace muster::agent
