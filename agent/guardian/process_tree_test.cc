#include "agent/guardian/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace muster::agent {
namespace {

bool Has(const std::vector<Process>& processes, pid_t pid) {
  return std::any_of(processes.begin(), processes.end(),
                     [pid](const Process& process) { return process.pid == pid; });
}

// A child that lives until it is killed; `setup` runs in it first, and is over on return.
template <class Setup>
pid_t StartChild(Setup setup) {
  int ready[2];
  if (pipe(ready) != 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    setup();
    close(ready[0]);
    char byte = 1;
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    while (true) pause();
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return pid;
}

void End(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(ProcessTree, ReadsAProcessWhateverItsName) {
  pid_t child = StartChild([] {
    setsid();
    prctl(PR_SET_NAME, "a) R 1 (b");
  });
  auto process = ReadProcess(child);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, child);
  EXPECT_EQ(process->parent, getpid());
  EXPECT_EQ(process->session, child);
  EXPECT_GT(process->start_time, 0U);
  End(child);
  EXPECT_FALSE(ReadProcess(child));
}

TEST(ProcessTree, FindsASessionWithItsLeaderFirst) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  pid_t leader = StartChild([&] {
    setsid();
    pid_t member = StartChild([] {});
    if (write(pipe_ends[1], &member, sizeof(member)) < 0) _exit(1);
  });
  pid_t member = 0;
  ASSERT_EQ(read(pipe_ends[0], &member, sizeof(member)), static_cast<ssize_t>(sizeof(member)));
  pid_t stranger = StartChild([] { setsid(); });
  std::vector<Process> session = ProcessesOfSession(leader);
  ASSERT_EQ(session.size(), 2U);
  EXPECT_EQ(session[0].pid, leader);
  EXPECT_EQ(session[1].pid, member);
  kill(member, SIGKILL);
  End(leader);
  End(stranger);
  EXPECT_TRUE(ProcessesOfSession(leader).empty() || Has(ProcessesOfSession(leader), member));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(ProcessTree, FindsDescendantsAtAnyDepthButNoZombies) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  pid_t child = StartChild([&] {
    pid_t grandchild = StartChild([] { setsid(); });
    if (write(pipe_ends[1], &grandchild, sizeof(grandchild)) < 0) _exit(1);
  });
  pid_t grandchild = 0;
  ASSERT_EQ(read(pipe_ends[0], &grandchild, sizeof(grandchild)),
            static_cast<ssize_t>(sizeof(grandchild)));
  pid_t zombie = fork();
  if (zombie == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(zombie), &info, WEXITED | WNOWAIT), 0);

  std::vector<Process> found = DescendantsOf(getpid());
  EXPECT_TRUE(Has(found, child));
  EXPECT_TRUE(Has(found, grandchild));
  EXPECT_FALSE(Has(found, zombie));
  EXPECT_FALSE(Has(found, getpid()));
  EXPECT_FALSE(Has(DescendantsOf(child), child));
  EXPECT_TRUE(Has(DescendantsOf(child), grandchild));
  kill(grandchild, SIGKILL);
  End(child);
  waitpid(zombie, nullptr, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

// Becomes `sleep` with one variable in its environment.
pid_t StartSleeper(const std::string& variable) {
  pid_t pid = fork();
  if (pid == 0) {
    std::string copy = variable;
    char name[] = "sleep", time[] = "1000";
    char* argv[] = {name, time, nullptr};
    char* environment[] = {copy.data(), nullptr};
    execve("/bin/sleep", argv, environment);
    _exit(127);
  }
  // Its memory is its own only after exec.
  while (true) {
    char path[64], program[64] = {};
    std::snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    FILE* file = std::fopen(path, "r");
    bool is_sleep = file != nullptr && std::fgets(program, sizeof(program), file) != nullptr &&
                    std::strcmp(program, "sleep\n") == 0;
    if (file != nullptr) std::fclose(file);
    if (is_sleep) return pid;
  }
}

TEST(ProcessTree, FindsWorkersByTheBeginningOfTheirId) {
  std::string incarnation = "tree-test-" + std::to_string(getpid());
  pid_t worker = StartSleeper("MUSTER_WORKER_ID=" + incarnation + "/12/0");
  pid_t other_round = StartSleeper("MUSTER_WORKER_ID=" + incarnation + "/1/0");
  pid_t other_name = StartSleeper("NOT_MUSTER_WORKER_ID=" + incarnation + "/12/0");
  std::vector<Process> found = ProcessesOfWorkers(incarnation + "/12/");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pid, worker);
  EXPECT_EQ(ProcessesOfWorkers(incarnation + "/").size(), 2U);
  for (pid_t pid : {worker, other_round, other_name}) End(pid);
  EXPECT_TRUE(ProcessesOfWorkers(incarnation + "/").empty());
}

TEST(ProcessTree, NeverSignalsAStrangerWithTheSamePid) {
  pid_t child = StartChild([] {});
  Process process = *ReadProcess(child);
  Process stranger = process;
  --stranger.start_time;
  EXPECT_FALSE(SignalProcess(stranger, SIGKILL));
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  EXPECT_TRUE(SignalProcess(process, SIGKILL));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_FALSE(SignalProcess(process, SIGKILL));
}

}  // namespace
}  // namespace muster::agent
