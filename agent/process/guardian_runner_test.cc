// Real workers under a real guardian: how they start, end and are stopped.
#include "agent/process/guardian_runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/worker_fixture.h"
#include "agent/process/worker_observer.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Seen = WorkerObserver::Seen;

constexpr RoundId kRound(1);

// A guardian and its runner; each test has its own.
class GuardianRunnerTest : public testing::Test {
 protected:
  void SetUp() override { Start(); }

  void Start() {
    link_ = StartGuardian();
    ASSERT_EQ(link_.error, 0);
    runner_ = std::make_unique<GuardianRunner>(link_, &observer_);
  }

  void Spawn(std::vector<WorkerCommand> workers, RoundId round = kRound) {
    runner_->Spawn(round, std::move(workers));
  }

  bool WaitForExits(size_t count) {
    return observer_.WaitFor([=](const Seen& seen) { return seen.exited.size() >= count; });
  }

  // Stops the round and waits until it is gone; the unkillable, or nothing if that takes too long.
  std::optional<std::vector<int64_t>> StopAndWait(StopOptions options, RoundId round = kRound) {
    runner_->Stop(round, options);
    std::optional<std::vector<int64_t>> unkillable;
    observer_.WaitFor([&](const Seen& seen) {
      for (const auto& [gone, pids] : seen.gone) {
        if (gone == round) unkillable = pids;
      }
      return unkillable.has_value();
    });
    return unkillable;
  }

  // Runs one worker to its end and returns what it wrote.
  std::string OutputOf(WorkerCommand command, LifePipe* pipe) {
    Spawn({std::move(command)});
    EXPECT_TRUE(WaitForExits(1));
    EXPECT_TRUE(StopAndWait({}).has_value());
    EXPECT_TRUE(pipe->WaitForEnd());
    return pipe->text();
  }

  GuardianLink link_;
  WorkerObserver observer_;
  std::unique_ptr<GuardianRunner> runner_;
};

TEST_F(GuardianRunnerTest, ReportsExitCodesAndSignals) {
  Spawn({ShellWorker(0, "exit 0", nullptr), ShellWorker(1, "exit 7", nullptr),
         ShellWorker(2, "kill -9 $$", nullptr),
         ShellWorker(3, "ulimit -c 0; kill -ABRT $$", nullptr)});
  ASSERT_TRUE(WaitForExits(4));
  Seen seen = observer_.seen();
  EXPECT_EQ(seen.started.size(), 4U);
  std::map<LocalRank, WorkerExit> exits;
  for (const auto& exited : seen.exited) {
    exits[exited.local_rank] = exited.exit;
    EXPECT_EQ(exited.pid, seen.started[exited.local_rank]);
    EXPECT_EQ(exited.round, kRound);
  }
  EXPECT_TRUE(exits[LocalRank(0)].Succeeded());
  EXPECT_EQ(exits[LocalRank(1)].code, 7);
  EXPECT_EQ(exits[LocalRank(2)].signal, SIGKILL);
  EXPECT_EQ(exits[LocalRank(3)].signal, SIGABRT);
  EXPECT_FALSE(exits[LocalRank(3)].dumped_core);
  EXPECT_EQ(StopAndWait({}), std::vector<int64_t>{});
}

TEST_F(GuardianRunnerTest, WorkersRunOnTheProcessorsTheyAreGiven) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed)) --last;
  const std::string show = "grep Cpus_allowed_list /proc/self/status";
  LifePipe bound;
  WorkerCommand command = ShellWorker(0, show, &bound);
  command.cpus = {last};
  EXPECT_EQ(OutputOf(std::move(command), &bound),
            "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
  // One that is gone by now is no reason not to run.
  LifePipe free;
  command = ShellWorker(0, show, &free);
  command.cpus = {8000};
  Spawn({std::move(command)}, RoundId(2));
  ASSERT_TRUE(WaitForExits(2));
  EXPECT_TRUE(StopAndWait({}, RoundId(2)).has_value());
  ASSERT_TRUE(free.WaitForEnd());
  EXPECT_EQ(free.text().rfind("Cpus_allowed_list:", 0), 0U);
  EXPECT_EQ(observer_.seen().exited.back().exit.code, 0);
}

TEST_F(GuardianRunnerTest, OneWorkerReadsTheInputAndOthersNothing) {
  runner_.reset();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int own_input = dup(STDIN_FILENO);
  ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  Start();
  ASSERT_EQ(dup2(own_input, STDIN_FILENO), STDIN_FILENO);
  close(own_input);
  close(ends[0]);
  ASSERT_EQ(write(ends[1], "hello\n", 6), 6);
  close(ends[1]);
  LifePipe nothing;
  LifePipe all;
  WorkerCommand other = ShellWorker(0, "cat; echo end", &nothing);
  WorkerCommand reader = ShellWorker(1, "cat; echo end", &all);
  reader.gets_input = true;
  Spawn({std::move(other), std::move(reader)});
  ASSERT_TRUE(WaitForExits(2));
  EXPECT_TRUE(StopAndWait({}).has_value());
  ASSERT_TRUE(nothing.WaitForEnd());
  ASSERT_TRUE(all.WaitForEnd());
  EXPECT_EQ(nothing.text(), "end\n");
  EXPECT_EQ(all.text(), "hello\nend\n");
}

TEST_F(GuardianRunnerTest, ReportsEndsInTheirOrder) {
  Spawn({ShellWorker(0, "exec sleep 1000", nullptr), ShellWorker(1, "exit 3", nullptr)});
  ASSERT_TRUE(WaitForExits(1));
  EXPECT_EQ(observer_.seen().exited[0].local_rank, LocalRank(1));
  runner_->Signal(SIGTERM);
  ASSERT_TRUE(WaitForExits(2));
  EXPECT_EQ(observer_.seen().exited[1].local_rank, LocalRank(0));
  EXPECT_EQ(observer_.seen().exited[1].exit.signal, SIGTERM);
}

TEST_F(GuardianRunnerTest, SignalsOneWorker) {
  Spawn({ShellWorker(0, "exec sleep 1000", nullptr), ShellWorker(1, "exec sleep 1000", nullptr)});
  ASSERT_TRUE(observer_.WaitFor([](const Seen& seen) { return seen.started.size() == 2; }));
  runner_->SignalWorker(RoundId(9), LocalRank(0), SIGKILL);  // of another round
  runner_->SignalWorker(kRound, LocalRank(5), SIGKILL);
  runner_->SignalWorker(kRound, LocalRank(1), SIGKILL);
  ASSERT_TRUE(WaitForExits(1));
  EXPECT_EQ(observer_.seen().exited[0].local_rank, LocalRank(1));
  EXPECT_EQ(observer_.seen().exited[0].exit.signal, SIGKILL);
  EXPECT_EQ(StopAndWait({}), std::vector<int64_t>{});
  // The other one was let live until then.
  EXPECT_EQ(observer_.seen().exited[1].exit.signal, SIGTERM);
}

TEST_F(GuardianRunnerTest, NamesWhyAProgramCannotBeRun) {
  WorkerCommand missing = ShellWorker(0, "", nullptr);
  missing.argv = {"/no/such/program"};
  WorkerCommand unknown = ShellWorker(1, "", nullptr);
  unknown.argv = {"no-such-program-anywhere"};
  WorkerCommand no_program = ShellWorker(2, "", nullptr);
  no_program.argv = {"/etc/passwd"};
  WorkerCommand folder = ShellWorker(3, "", nullptr);
  folder.argv = {"/etc"};
  std::string text = testing::TempDir() + "/text";
  int fd = open(text.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0700);
  ASSERT_EQ(write(fd, "echo\n", 5), 5);
  close(fd);
  WorkerCommand no_format = ShellWorker(4, "", nullptr);
  no_format.argv = {text};
  WorkerCommand nothing = ShellWorker(5, "", nullptr);
  nothing.argv = {""};
  Spawn({missing, unknown, no_program, folder, no_format, nothing});
  ASSERT_TRUE(observer_.WaitFor([](const Seen& seen) { return seen.failed_to_start.size() == 6; }));
  std::map<LocalRank, int> wanted = {{LocalRank(0), ENOENT},  {LocalRank(1), ENOENT},
                                     {LocalRank(2), EACCES},  {LocalRank(3), EACCES},
                                     {LocalRank(4), ENOEXEC}, {LocalRank(5), ENOENT}};
  EXPECT_EQ(observer_.seen().failed_to_start, wanted);
  EXPECT_EQ(StopAndWait({}), std::vector<int64_t>{});
  EXPECT_TRUE(observer_.seen().exited.empty());
}

TEST_F(GuardianRunnerTest, LooksForTheProgramOnTheWorkersPath) {
  LifePipe pipe;
  WorkerCommand command = ShellWorker(0, "", &pipe);
  command.argv = {"echo", "found"};
  command.environment[0] = "PATH=/no/such:/etc/passwd::/bin";
  EXPECT_EQ(OutputOf(command, &pipe), "found\n");
}

TEST_F(GuardianRunnerTest, PassesTheEnvironmentByteForByte) {
  LifePipe pipe;
  WorkerCommand command = ShellWorker(0, "", &pipe);
  command.argv = {"cat", "/proc/self/environ"};
  command.environment = {"PATH=/usr/bin:/bin",
                         "SLURM_JOB_CPUS_PER_NODE=64(x2)",
                         "A=b; touch pwned",
                         "N=two\nlines",
                         "E=x=y=z",
                         "BASH_FUNC_f%%=() { echo hi; }",
                         "U=",
                         "BYTES=\x80\xff",
                         command.environment[1]};
  std::string expected;
  for (const std::string& variable : command.environment) expected += variable + '\0';
  EXPECT_EQ(OutputOf(command, &pipe), expected);
}

TEST_F(GuardianRunnerTest, PassesArgumentsByteForByte) {
  LifePipe pipe;
  WorkerCommand command = ShellWorker(0, "", &pipe);
  command.argv = {"printf", "%s|", "a b", "", "$(touch x)", "\xff\xfe\n", "--", "'\""};
  EXPECT_EQ(OutputOf(command, &pipe), "a b||$(touch x)|\xff\xfe\n|--|'\"|");
}

TEST_F(GuardianRunnerTest, PassesTwoMebibytesAndRefusesMoreThanExecTakes) {
  LifePipe pipe;
  WorkerCommand large = ShellWorker(0, "echo $# ${#1}", &pipe);
  large.argv.emplace_back("sh");
  // 120 KiB each: the kernel takes at most 128 KiB in one string, 2 MiB with a stack of 8 MiB.
  for (int i = 0; i < 15; ++i) large.argv.emplace_back(120 << 10, 'x');
  WorkerCommand too_large = ShellWorker(1, "", nullptr);
  too_large.argv.emplace_back(200 << 10, 'x');
  WorkerCommand huge = ShellWorker(2, "", nullptr);
  huge.argv.emplace_back(9 << 20, 'x');
  Spawn({large, too_large, huge});
  ASSERT_TRUE(observer_.WaitFor([](const Seen& seen) {
    return seen.exited.size() == 1 && seen.failed_to_start.size() == 2;
  }));
  ASSERT_TRUE(pipe.WaitForEnd());
  EXPECT_EQ(pipe.text(), "15 122880\n");
  std::map<LocalRank, int> wanted = {{LocalRank(1), E2BIG}, {LocalRank(2), E2BIG}};
  EXPECT_EQ(observer_.seen().failed_to_start, wanted);
}

TEST_F(GuardianRunnerTest, GivesWorkersNothingButThreeDescriptorsAndNoInput) {
  LifePipe pipe;
  int leak = open("/dev/null", O_RDONLY);  // Without close-on-exec, after the guardian's start.
  WorkerCommand command =
      ShellWorker(0, "readlink /proc/self/fd/0; cd /proc/self/fd; echo *; cat", &pipe);
  std::string output = OutputOf(command, &pipe);
  close(leak);
  // "3" is the shell's own descriptor of the folder, where it has one.
  EXPECT_TRUE(output == "/dev/null\n0 1 2\n" || output == "/dev/null\n0 1 2 3\n") << output;
}

TEST_F(GuardianRunnerTest, GivesEachWorkerItsOwnSessionAndACleanMask) {
  LifePipe pipe;
  WorkerCommand command =
      ShellWorker(0, "echo $$ $(ps -o sid= -o pgid= -p $$); grep SigBlk /proc/self/status", &pipe);
  std::string output = OutputOf(command, &pipe);
  std::string pid = std::to_string(observer_.seen().started[LocalRank(0)]);
  size_t line_end = output.find('\n');
  std::string first = output.substr(0, line_end);
  first.erase(
      std::unique(first.begin(), first.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      first.end());
  EXPECT_EQ(first, pid + " " + pid + " " + pid);
  EXPECT_EQ(output.substr(line_end + 1), "SigBlk:\t0000000000000000\n");
}

TEST_F(GuardianRunnerTest, KillsAWorkerThatIgnoresTheFirstSignal) {
  LifePipe pipe;
  Spawn({ShellWorker(0, "trap '' TERM; echo ready; while :; do sleep 1; done", &pipe)});
  ASSERT_TRUE(pipe.WaitForText("ready"));
  EXPECT_EQ(StopAndWait({.first_signal = SIGTERM, .grace = milliseconds(50)}),
            std::vector<int64_t>{});
  EXPECT_EQ(observer_.seen().exited[0].exit.signal, SIGKILL);
  EXPECT_TRUE(pipe.WaitForEnd());
}

TEST_F(GuardianRunnerTest, ASecondStopShortensTheGrace) {
  LifePipe pipe;
  Spawn({ShellWorker(0, "trap '' TERM; echo ready; while :; do sleep 1; done", &pipe)});
  ASSERT_TRUE(pipe.WaitForText("ready"));
  runner_->Stop(kRound, {.first_signal = SIGTERM, .grace = seconds(1000)});
  EXPECT_TRUE(StopAndWait({.first_signal = SIGTERM, .grace = seconds(0)}).has_value());
  EXPECT_TRUE(pipe.WaitForEnd());
}

TEST_F(GuardianRunnerTest, SweepsGrandchildrenThatLeftTheSession) {
  LifePipe pipe;
  Spawn({ShellWorker(
      0, "setsid sh -c 'trap \"\" TERM HUP; echo deep; sleep 1000; :' & wait; exit 1", &pipe)});
  ASSERT_TRUE(pipe.WaitForText("deep"));
  EXPECT_EQ(StopAndWait({.first_signal = SIGTERM, .grace = seconds(1000)}), std::vector<int64_t>{});
  EXPECT_TRUE(pipe.WaitForEnd());
}

TEST_F(GuardianRunnerTest, LetsLeftOversFinishAfterSuccess) {
  LifePipe pipe;
  Spawn({ShellWorker(
      0, "setsid sh -c 'trap \"echo saved; exit\" TERM; echo up; while :; do sleep 0.01; done' &",
      &pipe)});
  ASSERT_TRUE(WaitForExits(1));
  ASSERT_TRUE(pipe.WaitForText("up"));
  EXPECT_EQ(StopAndWait({.first_signal = SIGTERM, .grace = seconds(1000)}), std::vector<int64_t>{});
  EXPECT_TRUE(pipe.WaitForEnd());
  EXPECT_NE(pipe.text().find("saved"), std::string::npos);
}

TEST_F(GuardianRunnerTest, ReapsOrphansWithoutTakingThemForWorkers) {
  LifePipe pipe;
  Spawn({ShellWorker(0, "for i in $(seq 50); do (sh -c 'exit 9' &); done; echo done; sleep 1000",
                     &pipe)});
  ASSERT_TRUE(pipe.WaitForText("done"));
  EXPECT_TRUE(StopAndWait({.grace = seconds(0)}).has_value());
  EXPECT_EQ(observer_.seen().exited.size(), 1U);
  EXPECT_EQ(observer_.seen().exited[0].exit.signal, SIGKILL);
}

TEST_F(GuardianRunnerTest, RunsAHundredRounds) {
  LifePipe pipe;
  for (uint64_t i = 1; i <= 100; ++i) {
    Spawn({ShellWorker(0, "sleep 1000", &pipe), ShellWorker(1, "exit 1", &pipe)}, RoundId(i));
    ASSERT_TRUE(
        observer_.WaitFor([=](const Seen& seen) { return seen.exited.size() >= 2 * i - 1; }));
    ASSERT_EQ(StopAndWait({.grace = milliseconds(1000)}, RoundId(i)), std::vector<int64_t>{});
    ASSERT_EQ(observer_.seen().exited.size(), 2 * i);
  }
  EXPECT_TRUE(pipe.WaitForEnd());
}

TEST_F(GuardianRunnerTest, StopOfARoundThatNeverWasIsAnswered) {
  EXPECT_EQ(StopAndWait({}, RoundId(9)), std::vector<int64_t>{});
}

TEST_F(GuardianRunnerTest, EndsTheGuardianAndItsWorkersAndFolder) {
  LifePipe pipe;
  std::string folder = testing::TempDir() + "/private";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(mkdir((folder + "/inner").c_str(), 0700), 0);
  ASSERT_EQ(symlink("/etc", (folder + "/link").c_str()), 0);
  runner_->RemoveAtEnd(folder);
  Spawn({ShellWorker(0, "echo up; sleep 1000", &pipe)});
  ASSERT_TRUE(pipe.WaitForText("up"));
  runner_.reset();
  EXPECT_TRUE(pipe.WaitForEnd());
  EXPECT_EQ(kill(link_.pid, 0), -1);
  EXPECT_NE(access(folder.c_str(), F_OK), 0);
  EXPECT_EQ(access("/etc/passwd", F_OK), 0);
}

}  // namespace
}  // namespace muster::agent
