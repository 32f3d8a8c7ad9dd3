// Ranks are processes. One is SIGKILLed: the others must end with PeerLost and its rank, whatever
// they were doing. Or one forks: the child is no rank. Each process reports by its exit code.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "worker_sdk/collectives/create.h"
#include "worker_sdk/context/fake_agent.h"

namespace muster {
namespace {

constexpr int kWorld = 4;
constexpr int kVictim = 2;
// Exit codes of a survivor.
constexpr int kLostVictim = 40, kLostOther = 41, kOtherError = 42, kNoError = 43, kSetUp = 44;

[[noreturn]] void Die() {
  (void)raise(SIGKILL);
  _exit(1);
}

int CodeOf(const Status& status) {
  if (status.ok()) return kNoError;
  if (status.code() != StatusCode::kAborted) return kOtherError;
  return status.lost_rank() == kVictim ? kLostVictim : kLostOther;
}

// A moment of the victim's death. `body` runs on all ranks, with the victim dying in it.
struct Moment {
  const char* name;
  std::function<Status(ProcessGroup&)> body;
};

Status SumForEver(ProcessGroup& group, size_t count, int death_turn) {
  std::vector<float> values(count, 1);
  for (int turn = 0;; ++turn) {
    Work work = group.AllReduce(MutableView(values), ReduceOp::kAvg);
    if (group.rank() == kVictim && turn == death_turn) Die();
    Status status = work.Wait();
    if (!status.ok()) return status;
  }
}

const Moment kMoments[] = {
    {"before its first operation",
     [](ProcessGroup& group) {
       if (group.rank() == kVictim) Die();
       return group.Barrier().Wait();
     }},
    {"after the start of its first operation",
     [](ProcessGroup& group) { return SumForEver(group, 1000, 0); }},
    {"within a large operation",
     [](ProcessGroup& group) { return SumForEver(group, 8u << 20, 1); }},
    {"between small operations", [](ProcessGroup& group) { return SumForEver(group, 10, 200); }},
    {"within a broadcast chain",
     [](ProcessGroup& group) -> Status {
       std::vector<float> values(8u << 20);
       for (int turn = 0;; ++turn) {
         Work work = group.Broadcast(MutableView(values), 0);
         if (group.rank() == kVictim && turn == 1) Die();
         Status status = work.Wait();
         if (!status.ok()) return status;
       }
     }},
    {"while one waits for its message",
     [](ProcessGroup& group) {
       std::vector<float> values(10);
       if (group.rank() == kVictim) Die();
       // Only rank 0 waits for the victim; the others wait for rank 0.
       return group.Receive(MutableView(values), group.rank() == 0 ? kVictim : 0).Wait();
     }},
};

int Survive(const FakeAgent& agent, int rank, Algorithm algorithm,
            const std::function<Status(ProcessGroup&)>& body) {
  agent.SetEnvironment(rank);
  auto context = Context::Create();
  if (!context.ok()) return kSetUp;
  auto group = CreateProcessGroup(**context, {"default", algorithm});
  if (!group.ok()) return kSetUp;
  return CodeOf(body(**group));
}

// Runs all ranks; returns their wait statuses.
std::vector<int> RunWorld(Algorithm algorithm, const std::function<Status(ProcessGroup&)>& body) {
  FakeAgent agent(kWorld);
  std::vector<pid_t> pids;
  for (int r = 0; r < kWorld; ++r) {
    pid_t pid = fork();
    if (pid == 0) _exit(Survive(agent, r, algorithm, body));
    pids.push_back(pid);
  }
  agent.Start();
  std::vector<int> statuses;
  for (pid_t pid : pids) {
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    statuses.push_back(status);
  }
  return statuses;
}

TEST(PeerDeath, EverySurvivorNamesTheVictimAtEveryMoment) {
  for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing}) {
    for (const Moment& moment : kMoments) {
      std::vector<int> statuses = RunWorld(algorithm, moment.body);
      for (int r = 0; r < kWorld; ++r) {
        int status = statuses[static_cast<size_t>(r)];
        if (r == kVictim) {
          EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << moment.name;
        } else {
          EXPECT_TRUE(WIFEXITED(status)) << moment.name << ", rank " << r;
          EXPECT_EQ(WEXITSTATUS(status), kLostVictim) << moment.name << ", rank " << r;
        }
      }
    }
  }
}

TEST(PeerDeath, WhatTheAgentSaysIsBelievedBeforeWhatTheConnectionShows) {
  // Rank 2's end is a consequence; the agent names rank 3 within the grace.
  FakeAgent agent(2);
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  pid_t victim = fork();
  if (victim == 0) {
    _exit(Survive(agent, 1, Algorithm::kDirect, [](ProcessGroup& group) {
      if (!group.Barrier().Wait().ok()) _exit(kSetUp);
      Die();
      return Status();
    }));
  }
  pid_t survivor = fork();
  if (survivor == 0) {
    agent.SetEnvironment(0);
    auto context = Context::Create();
    if (!context.ok()) _exit(kSetUp);
    CpuGroupOptions options;
    options.world_size = 2;
    options.world = (*context)->world();
    options.key = (*context)->key();
    options.culprit_grace = std::chrono::minutes(1);
    auto group = CreateCpuGroup((*context)->store(), (*context)->abort_signal(), options);
    if (!group.ok() || !(*group)->Barrier().Wait().ok()) _exit(kSetUp);
    char ready = 1;
    if (write(pipe_fds[1], &ready, 1) != 1) _exit(kSetUp);
    Status status = (*group)->Barrier().Wait();
    _exit(status.lost_rank() == 3 ? kLostOther : CodeOf(status));
  }
  agent.Start();
  char ready = 0;
  ASSERT_EQ(read(pipe_fds[0], &ready, 1), 1);
  int status = -1;
  ASSERT_EQ(waitpid(victim, &status, 0), victim);
  agent.PushAbort({agent.welcome().world.id, Rank(3), "rank 3 was killed"});
  ASSERT_EQ(waitpid(survivor, &status, 0), survivor);
  EXPECT_EQ(WEXITSTATUS(status), kLostOther);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST(ForkedChild, IsToldAndLeavesTheGroupAlone) {
  FakeAgent agent(2);
  std::vector<pid_t> pids;
  for (int r = 0; r < 2; ++r) {
    pid_t pid = fork();
    if (pid != 0) {
      pids.push_back(pid);
      continue;
    }
    agent.SetEnvironment(r);
    auto context = Context::Create();
    if (!context.ok()) _exit(kSetUp);
    auto group = CreateProcessGroup(**context);
    if (!group.ok() || !(*group)->Barrier().Wait().ok()) _exit(kSetUp);
    pid_t child = fork();
    if (child == 0) {
      // A child that hangs is a failure.
      alarm(30);
      StatusCode code = (*group)->Barrier().Wait().code();
      group->reset();
      _exit(code == StatusCode::kFailedPrecondition ? 0 : kOtherError);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(kOtherError);
    _exit((*group)->Barrier().Wait().ok() ? 0 : kSetUp);
  }
  agent.Start();
  for (pid_t pid : pids) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  }
}

}  // namespace
}  // namespace muster
