#include "rendezvous/core/verdict.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

Instant At(int ms) { return Instant(milliseconds(ms)); }

TEST(Verdict, ReasonsAreGatheredOnceAndWithinABound) {
  std::string reasons;
  AddReason(reasons, "node a left: drained");
  AddReason(reasons, "node b left: drained");
  AddReason(reasons, "node a left: drained");
  EXPECT_EQ(reasons, "node a left: drained; node b left: drained");
  for (int i = 0; i < 1000; ++i) AddReason(reasons, "node " + std::to_string(i) + " left");
  EXPECT_LE(reasons.size(), 1100U);
}

WorkerFailure Failure(int rank, int code, int age_ms = 0) {
  WorkerFailure failure;
  failure.rank = Rank(rank);
  failure.node_name = "n";
  failure.exit.code = code;
  failure.age = milliseconds(age_ms);
  return failure;
}

std::vector<int> Ranks(const std::vector<WorkerFailure>& failures) {
  std::vector<int> ranks;
  ranks.reserve(failures.size());
  for (const WorkerFailure& failure : failures) ranks.push_back(failure.rank.value);
  return ranks;
}

TEST(FailureList, TheOneThatHappenedFirstIsTheRootWhateverCameFirst) {
  FailureList failures;
  failures.Add(At(1000), Failure(2, 1, 10));
  failures.Add(At(1001), Failure(0, 1, 50));
  failures.Add(At(1002), Failure(1, 1, 5));
  EXPECT_EQ(Ranks(failures.InOrder(At(9000))), (std::vector<int>{0, 2, 1}));
  EXPECT_EQ(failures.root().rank, Rank(0));
}

TEST(FailureList, TellsHowLongAfterTheRootEachFollowed) {
  FailureList failures;
  failures.Add(At(1000), Failure(2, 1, 10));
  failures.Add(At(1001), Failure(0, 1, 50));
  const std::vector<WorkerFailure> kept = failures.InOrder(At(2000));
  EXPECT_EQ(kept[0].age, milliseconds(1049));
  EXPECT_EQ(kept[0].age - kept[1].age, milliseconds(39));
}

TEST(FailureList, ArrivalDecidesBetweenEquals) {
  FailureList failures;
  failures.Add(At(1000), Failure(5, 1));
  failures.Add(At(1000), Failure(4, 1));
  EXPECT_EQ(Ranks(failures.InOrder(At(9000))), (std::vector<int>{5, 4}));
}

TEST(FailureList, ARepeatedReportChangesNothing) {
  FailureList failures;
  failures.Add(At(1000), Failure(1, 3));
  failures.Add(At(2000), Failure(1, 3, 1500));
  EXPECT_EQ(failures.InOrder(At(9000)).size(), 1u);
}

TEST(FailureList, ANegativeAgeIsTakenAsNow) {
  FailureList failures;
  failures.Add(At(1000), Failure(1, 3, -5000));
  failures.Add(At(1001), Failure(2, 3));
  EXPECT_EQ(failures.root().rank, Rank(1));
}

TEST(FailureList, KeepsTheEarliestOfVeryMany) {
  FailureList failures;
  for (int rank = 0; rank < 1000; ++rank) failures.Add(At(5000 - rank), Failure(rank, 1));
  EXPECT_EQ(failures.InOrder(At(9000)).size(), FailureList::kMaxKept);
  EXPECT_EQ(failures.root().rank, Rank(999));
}

TEST(Verdict, TheExitCodeIsTheRootCausesOwn) {
  struct Case {
    WorkerExit exit;
    int code;
  };
  for (const Case& c : {Case{{.code = 3}, 3}, Case{{.signal = 9}, 137}, Case{{.code = 0}, 1}}) {
    FailureList failures;
    WorkerFailure failure = Failure(1, 0);
    failure.exit = c.exit;
    failures.Add(At(1), failure);
    failures.Add(At(2), Failure(0, 77));
    const Verdict verdict = FailedByWorker(At(9000), failures, 0, "no more");
    EXPECT_EQ(verdict.exit_code, c.code);
    EXPECT_FALSE(verdict.succeeded);
    EXPECT_EQ(Ranks(verdict.failures), (std::vector<int>{1, 0}));
  }
}

TEST(Verdict, TheReasonNamesNodeAndCauseAndWhyItWasNotRestarted) {
  FailureList failures;
  WorkerFailure failure = Failure(3, 0);
  failure.local_rank = LocalRank(1);
  failure.exit.signal = 11;
  failures.Add(At(1), failure);
  const Verdict verdict = FailedByWorker(At(9000), failures, 2, "the budget is spent");
  EXPECT_EQ(verdict.reason,
            "worker rank 3 (local rank 1) on node n was killed by signal 11 (SIGSEGV); the budget "
            "is spent");
  EXPECT_EQ(verdict.restarts_charged, 2);
}

TEST(Verdict, TheReasonNamesTheProcess) {
  WorkerFailure failure = Failure(3, 7);
  failure.pid = 4711;
  EXPECT_EQ(DescribeFailure(failure),
            "worker rank 3 (local rank 0, pid 4711) on node n exited with code 7");
}

TEST(Verdict, TheReasonTellsHangsAndWantOfMemoryFromOtherSignals) {
  WorkerFailure failure = Failure(3, 0);
  failure.exit.signal = 9;
  failure.out_of_memory = true;
  EXPECT_EQ(DescribeFailure(failure),
            "worker rank 3 (local rank 0) on node n was killed by the kernel for want of memory "
            "(signal 9)");
  failure.out_of_memory = false;
  failure.hung = true;
  EXPECT_EQ(DescribeFailure(failure), "worker rank 3 (local rank 0) on node n hung and was killed");
  failure.only_waited = true;
  EXPECT_EQ(DescribeFailure(failure),
            "worker rank 3 (local rank 0) on node n only waited for other ranks and was killed, "
            "since no rank was found that hangs");
}

TEST(Verdict, WhoOnlyWaitedIsNoCauseWhereAnotherWasSeenToHang) {
  WorkerFailure waited = Failure(0, 137);
  waited.hung = waited.only_waited = true;
  WorkerFailure hung = Failure(3, 137);
  hung.hung = true;
  for (bool is_waiter_first : {true, false}) {
    FailureList failures;
    failures.Add(At(1), is_waiter_first ? waited : hung);
    failures.Add(At(2), is_waiter_first ? hung : waited);
    failures.Add(At(3), Failure(1, 1));
    EXPECT_EQ(Ranks(failures.InOrder(At(9))), (std::vector<int>{3, 0, 1}));
  }
  FailureList deadlock;
  deadlock.Add(At(1), waited);
  deadlock.Add(At(2), Failure(1, 1));
  EXPECT_EQ(deadlock.root().rank, Rank(0)) << "who died of the kill follows";
}

TEST(Verdict, AProgramThatCannotStartIsBlamedBeforeAnEarlierFailure) {
  FailureList failures;
  failures.Add(At(1), Failure(0, 1));
  WorkerFailure unstarted = Failure(2, 127);
  unstarted.failed_to_start = true;
  unstarted.message = "/no/such";
  failures.Add(At(5), unstarted);
  const Verdict verdict = FailedByWorker(At(9000), failures, 0, "");
  EXPECT_EQ(verdict.exit_code, 127);
  EXPECT_EQ(Ranks(verdict.failures), (std::vector<int>{2, 0}));
  EXPECT_EQ(verdict.reason,
            "worker rank 2 (local rank 0) on node n could not start: the program was "
            "not found (/no/such); give the path of an executable program, the same on every node");
}

TEST(Verdict, AShortageIsChargedAsAnyFailure) {
  FailureList failures;
  WorkerFailure starved = Failure(2, 71);
  starved.failed_to_start = true;
  starved.message = "Too many open files";
  failures.Add(At(5), starved);
  EXPECT_EQ(failures.Hopeless(), nullptr);
  EXPECT_EQ(FailedByWorker(At(9000), failures, 1, "the budget is spent").reason,
            "worker rank 2 (local rank 0) on node n could not start (Too many open files); the "
            "budget is spent");
}

}  // namespace
}  // namespace muster::rendezvous
