// Nothing is left behind when the agent, the guardian or both are killed or frozen.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "agent/guardian/guardian.h"
#include "agent/guardian/process_tree.h"
#include "agent/process/guardian_runner.h"
#include "agent/process/worker_fixture.h"
#include "agent/process/worker_observer.h"
#include "base/clock.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using Seen = WorkerObserver::Seen;

constexpr RoundId kRound(1);
// A worker with a child in its session and one that left it; none ends by itself.
constexpr char kFamily[] =
    "sleep 1000 & setsid sh -c 'trap \"\" HUP TERM; echo up; sleep 1000; :' & wait";

// An agent as a process of its own, to be killed: starts its workers, then waits for ever.
struct Agent {
  explicit Agent(const std::vector<std::string>& scripts, LifePipe* life,
                 Duration lease = Duration::zero()) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid = RunInChild([&] {
      GuardianLink link = StartGuardian();
      if (write(ends[1], &link.pid, sizeof(link.pid)) != sizeof(link.pid)) _exit(1);
      WorkerObserver observer;
      GuardianRunner runner(link, &observer);
      std::vector<WorkerCommand> workers;
      for (size_t i = 0; i < scripts.size(); ++i) {
        workers.push_back(ShellWorker(static_cast<int>(i), scripts[i], life));
      }
      runner.Spawn(kRound, workers);
      // Else a frozen agent would hold it.
      life->CloseWriteEnd();
      if (lease > Duration::zero()) runner.RenewDeadline(SystemClock().Now() + lease);
      pause();
    });
    close(ends[1]);
    if (read(ends[0], &guardian, sizeof(guardian)) != sizeof(guardian)) guardian = -1;
    close(ends[0]);
  }
  ~Agent() {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    WaitForChild(pid);
  }

  pid_t pid = -1;
  pid_t guardian = -1;
};

bool NothingIsLeft() { return ProcessesOfWorkers(TestWorkerPrefix() + "/").empty(); }

TEST(GuardianDeath, AKilledAgentTakesAllDescendantsWithIt) {
  LifePipe life;
  Agent agent({kFamily, kFamily}, &life);
  ASSERT_TRUE(life.WaitForText("up\nup\n"));
  kill(agent.pid, SIGKILL);
  EXPECT_TRUE(life.WaitForEnd());
  EXPECT_TRUE(WaitForProcess(agent.guardian));
  EXPECT_TRUE(NothingIsLeft());
}

TEST(GuardianDeath, AFrozenAgentsWorkersAreKilledAtTheDeadline) {
  LifePipe life;
  Agent agent({kFamily}, &life, milliseconds(700));
  ASSERT_TRUE(life.WaitForText("up"));
  kill(agent.pid, SIGSTOP);
  EXPECT_TRUE(life.WaitForEnd());
  // It is still there, and frozen; its guardian waits for it to come back.
  EXPECT_EQ(ReadProcess(agent.pid)->state, 'T');
  EXPECT_EQ(kill(agent.guardian, 0), 0);
  kill(agent.pid, SIGKILL);
  EXPECT_TRUE(WaitForProcess(agent.guardian));
}

TEST(GuardianDeath, WorkersDieWithAKilledGuardianAndAgent) {
  LifePipe life;
  Agent agent({"echo up; exec sleep 1000", "echo up; exec sleep 1000"}, &life);
  ASSERT_TRUE(life.WaitForText("up\nup\n"));
  kill(agent.pid, SIGSTOP);
  kill(agent.guardian, SIGKILL);
  kill(agent.pid, SIGKILL);
  EXPECT_TRUE(life.WaitForEnd());
}

TEST(GuardianDeath, AKilledGuardianIsNoticedAndSweptAfter) {
  LifePipe life;
  WorkerObserver observer;
  GuardianLink link = StartGuardian();
  GuardianRunner runner(link, &observer);
  runner.Spawn(kRound, {ShellWorker(0, kFamily, &life)});
  ASSERT_TRUE(life.WaitForText("up"));
  kill(link.pid, SIGKILL);
  ASSERT_TRUE(observer.WaitFor([](const Seen& seen) { return !seen.lost.empty(); }));
  EXPECT_TRUE(NothingIsLeft());
  EXPECT_TRUE(life.WaitForEnd());
  // What is asked afterwards is answered.
  runner.Stop(kRound, {});
  EXPECT_TRUE(observer.WaitFor([](const Seen& seen) { return !seen.gone.empty(); }));
  runner.Spawn(RoundId(2), {ShellWorker(0, "exit 0", nullptr)});
  EXPECT_TRUE(observer.WaitFor([](const Seen& seen) { return !seen.failed_to_start.empty(); }));
}

TEST(GuardianDeath, AStoppedGuardianIsKilledAndReplacedByASweep) {
  LifePipe life;
  WorkerObserver observer;
  GuardianLink link = StartGuardian();
  GuardianRunner runner(link, &observer);
  std::string folder = testing::TempDir() + "/folder";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  runner.RemoveAtEnd(folder);
  runner.Spawn(kRound, {ShellWorker(0, kFamily, &life)});
  ASSERT_TRUE(life.WaitForText("up"));
  kill(link.pid, SIGSTOP);
  ASSERT_TRUE(observer.WaitFor([](const Seen& seen) { return !seen.lost.empty(); }));
  EXPECT_EQ(observer.seen().lost[0], "it was stopped by a signal");
  EXPECT_TRUE(life.WaitForEnd());
}

TEST(GuardianDeath, AStoppedGuardianWithoutARoundStillEndsWell) {
  WorkerObserver observer;
  GuardianLink link = StartGuardian();
  kill(link.pid, SIGSTOP);
  { GuardianRunner runner(link, &observer); }
  EXPECT_EQ(kill(link.pid, 0), -1);
}

TEST(GuardianDeath, SignalsOfTheTerminalDoNotEndTheGuardian) {
  LifePipe life;
  Agent agent({"echo up; exec sleep 1000"}, &life);
  ASSERT_TRUE(life.WaitForText("up"));
  EXPECT_NE(getpgid(agent.guardian), getpgid(agent.pid));
  EXPECT_EQ(getsid(agent.guardian), getsid(agent.pid));
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) kill(agent.guardian, signal);
  EXPECT_FALSE(WaitForProcess(agent.guardian, 100));
  EXPECT_EQ(ReadProcess(agent.guardian)->state, 'S');
  kill(agent.pid, SIGKILL);
  EXPECT_TRUE(WaitForProcess(agent.guardian));
}

TEST(GuardianDeath, TheGuardianIsNotTakenForTheLauncher) {
  LifePipe life;
  Agent agent({"echo up; exec sleep 1000"}, &life);
  ASSERT_TRUE(life.WaitForText("up"));
  for (const char* name : {"cmdline", "comm"}) {
    std::ifstream file("/proc/" + std::to_string(agent.guardian) + "/" + name);
    std::string text;
    std::getline(file, text);
    EXPECT_STREQ(text.c_str(), "muster-guardian") << name;
  }
}

TEST(GuardianDeath, IgnoredSignalsStayIgnoredInWorkers) {
  LifePipe life;
  pid_t agent = RunInChild([&] {
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    WorkerObserver observer;
    GuardianLink link = StartGuardian();
    // Handlers of the agent come later, and aren't inherited.
    signal(SIGHUP, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    GuardianRunner runner(link, &observer);
    WorkerCommand worker = ShellWorker(0, "", &life);
    worker.argv = {"grep", "SigIgn", "/proc/self/status"};
    runner.Spawn(kRound, {worker});
    observer.WaitFor([](const Seen& seen) { return seen.exited.size() == 1; });
    _exit(observer.seen().exited.size() == 1 ? 0 : 1);
  });
  EXPECT_EQ(WaitForChild(agent), 0);
  ASSERT_TRUE(life.WaitForEnd());
  uint64_t ignored = std::stoull(life.text().substr(life.text().find('\t') + 1), nullptr, 16);
  auto is_ignored = [&](int signal) { return (ignored >> (signal - 1) & 1) != 0; };
  EXPECT_TRUE(is_ignored(SIGHUP));
  EXPECT_TRUE(is_ignored(SIGCHLD));
  EXPECT_FALSE(is_ignored(SIGPIPE));
  EXPECT_FALSE(is_ignored(SIGTERM));
}

TEST(GuardianDeath, AnAgentKilledAtAnyInstantLeavesNothing) {
  std::mt19937 random(20261130);
  for (int i = 0; i < 50; ++i) {
    LifePipe life;
    int64_t delay_us = std::uniform_int_distribution<int>(0, 100000)(random) % (1 << (i % 17 + 1));
    pid_t agent = RunInChild([&] {
      GuardianLink link = StartGuardian();
      WorkerObserver observer;
      GuardianRunner runner(link, &observer);
      std::vector<WorkerCommand> workers;
      workers.reserve(4);
      for (int rank = 0; rank < 4; ++rank) workers.push_back(ShellWorker(rank, kFamily, &life));
      runner.Spawn(kRound, workers);
      pause();
    });
    // The random instant: the child is left alone for a while.
    timespec delay{0, delay_us * 1000};
    EXPECT_EQ(ppoll(nullptr, 0, &delay, nullptr), 0);
    kill(agent, SIGKILL);
    EXPECT_NE(WaitForChild(agent), -1);
    ASSERT_TRUE(life.WaitForEnd()) << "after " << delay_us << " us";
  }
  EXPECT_TRUE(NothingIsLeft());
}

// A container's entry point: pid 1 of its own pid namespace.
TEST(GuardianDeath, AsPidOneOrphansAreReapedAndSignalsHandled) {
  LifePipe life;
  pid_t outer = RunInChild([&] {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) _exit(99);
    pid_t init = fork();
    if (init > 0) {
      int status = 0;
      waitpid(init, &status, 0);
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
    }
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("proc", "/proc", "proc", 0, nullptr) != 0) _exit(99);
    GuardianLink link = StartGuardian();
    WorkerObserver observer;
    bool is_well = getpid() != 1 && getppid() == 1;
    {
      GuardianRunner runner(link, &observer);
      // An orphan of pid 1: its parent is outside of the guardian, and ends.
      pid_t parent = RunInChild([] { RunInChild([] {}); });
      waitpid(parent, nullptr, 0);
      runner.Spawn(kRound, {ShellWorker(0, "kill -TERM 1; sleep 1000", &life)});
      sigset_t term;
      sigemptyset(&term);
      sigaddset(&term, SIGTERM);
      sigprocmask(SIG_BLOCK, &term, nullptr);
      int signal = 0;
      sigwait(&term, &signal);
      is_well = is_well && signal == SIGTERM;
    }
    _exit(is_well ? 42 : 1);
  });
  int status = WaitForChild(outer);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 99) GTEST_SKIP() << "no pid namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_TRUE(life.WaitForEnd());
}

}  // namespace
}  // namespace muster::agent
