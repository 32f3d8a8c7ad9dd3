#include "agent/process/fake_process_runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>

#include "agent/process/worker_observer.h"

namespace muster::agent {
namespace {

TEST(FakeProcessRunner, PlaysARoundAsTheTestSays) {
  WorkerObserver observer;
  FakeProcessRunner runner(&observer);
  WorkerCommand zero;
  zero.local_rank = LocalRank(0);
  zero.stdout_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  WorkerCommand one;
  one.local_rank = LocalRank(1);
  runner.Spawn(RoundId(1), {zero, one});
  EXPECT_EQ(fcntl(zero.stdout_fd, F_GETFD), -1);
  runner.ReportAllStarted();
  EXPECT_EQ(runner.running().size(), 2U);
  runner.ReportExited(LocalRank(1), {.code = 3});
  runner.Signal(SIGUSR1);
  runner.RenewDeadline(Instant(std::chrono::seconds(5)));
  runner.Stop(RoundId(1), {.first_signal = SIGTERM, .grace = std::chrono::seconds(1)});
  runner.ReportStopped({1000});

  WorkerObserver::Seen seen = observer.seen();
  EXPECT_EQ(seen.started.at(LocalRank(0)), 1000);
  ASSERT_EQ(seen.exited.size(), 2U);
  EXPECT_EQ(seen.exited[0].exit.code, 3);
  EXPECT_EQ(seen.exited[1].exit.signal, SIGTERM);
  ASSERT_EQ(seen.gone.size(), 1U);
  EXPECT_EQ(seen.gone[0].second, std::vector<int64_t>{1000});
  EXPECT_EQ(runner.signals(), std::vector<int>{SIGUSR1});
  EXPECT_EQ(runner.deadline(), Instant(std::chrono::seconds(5)));
  EXPECT_EQ(runner.stops().size(), 1U);
  EXPECT_EQ(runner.spawns().size(), 1U);
}

TEST(FakeProcessRunner, ReportsFailuresToStartAndTheLossOfTheGuardian) {
  WorkerObserver observer;
  FakeProcessRunner runner(&observer);
  runner.Spawn(RoundId(1), {WorkerCommand{}});
  runner.ReportFailedToStart(LocalRank(0), ENOENT);
  runner.ReportGuardianLost("it ended");
  EXPECT_EQ(observer.seen().failed_to_start.at(LocalRank(0)), ENOENT);
  EXPECT_EQ(observer.seen().lost, std::vector<std::string>{"it ended"});
}

}  // namespace
}  // namespace muster::agent
