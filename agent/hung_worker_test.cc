// Looks at real processes.
#include "agent/hung_worker.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "agent/guardian/process_tree.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

constexpr int kPatienceMs = 20'000;
int told_fd = -1;

void Tell(int /*signal*/) { [[maybe_unused]] ssize_t put = write(told_fd, "!", 1); }

// A child that leads a session, ready when the constructor returns.
class Child {
 public:
  explicit Child(const std::function<void()>& prepare) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    EXPECT_EQ(pipe(told_), 0);
    pid_ = fork();
    if (pid_ == 0) {
      setsid();
      told_fd = told_[1];
      prepare();
      [[maybe_unused]] ssize_t put = write(ready[1], "r", 1);
      while (true) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    close(told_[1]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(told_[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool WaitForState(char state) const {
    for (int waited = 0; waited < kPatienceMs; ++waited) {
      auto process = ReadProcess(pid_);
      if (process && process->state == state) return true;
      poll(nullptr, 0, 1);
    }
    return false;
  }
  // The signal's function has run.
  bool WasTold() const {
    char byte = 0;
    return read(told_[0], &byte, 1) == 1;
  }

 private:
  pid_t pid_ = -1;
  int told_[2];
};

TEST(LookAtHungProcesses, SeesThreadsAndSignalsWhoCatchesIt) {
  Child child([] { signal(SIGUSR1, Tell); });
  ASSERT_TRUE(child.WaitForState('S'));
  HungLook look = LookAtHungProcesses(child.pid(), SIGUSR1);
  EXPECT_TRUE(look.was_signalled);
  EXPECT_TRUE(child.WasTold());
  EXPECT_TRUE(look.state.starts_with("waits in the kernel")) << look.state;
  std::string pid = std::to_string(child.pid());
  EXPECT_NE(look.stacks.find("process " + pid + " ("), std::string::npos) << look.stacks;
  EXPECT_NE(look.stacks.find("  thread " + pid + " ("), std::string::npos) << look.stacks;
  EXPECT_NE(look.stacks.find("): waits in the kernel"), std::string::npos) << look.stacks;
}

TEST(LookAtHungProcesses, SignalsNobodyWhomItWouldEnd) {
  Child child([] {});
  HungLook look = LookAtHungProcesses(child.pid(), SIGUSR1);
  EXPECT_FALSE(look.was_signalled);
  EXPECT_NE(look.stacks, "");
  ASSERT_EQ(kill(child.pid(), 0), 0);
  ASSERT_TRUE(child.WaitForState('S'));
}

TEST(LookAtHungProcesses, AStoppedOneIsNotWaitedFor) {
  Child child([] { signal(SIGUSR1, Tell); });
  kill(child.pid(), SIGSTOP);
  ASSERT_TRUE(child.WaitForState('T'));
  HungLook look = LookAtHungProcesses(child.pid(), SIGUSR1);
  EXPECT_FALSE(look.was_signalled);
  EXPECT_EQ(look.state, "is stopped by a signal (T)");
}

TEST(LookAtHungProcesses, WhoIsGoneShowsNothing) {
  pid_t pid = 0;
  {
    Child child([] {});
    pid = child.pid();
  }
  HungLook look = LookAtHungProcesses(pid, SIGUSR1);
  EXPECT_EQ(look.stacks, "");
  EXPECT_EQ(look.state, "");
}

}  // namespace
}  // namespace muster::agent
