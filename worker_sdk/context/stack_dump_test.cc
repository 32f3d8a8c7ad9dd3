#include "worker_sdk/context/stack_dump.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace muster {
namespace {

// What a child process that runs `act` writes on stderr; its exit status comes after.
std::string StderrOf(const std::function<void()>& act, int& status) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    act();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char bytes[4096];
  ssize_t got = 0;
  while ((got = read(ends[0], bytes, sizeof bytes)) > 0) {
    text.append(bytes, static_cast<size_t>(got));
  }
  close(ends[0]);
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return text;
}

const std::string& OwnPath() {
  static const std::string path = [] {
    char text[4096];
    ssize_t size = readlink("/proc/self/exe", text, sizeof text);
    return std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
  }();
  return path;
}

std::string SignalText() { return std::to_string(SIGUSR1); }

TEST(StackDump, ShowsTheStackAndTheProgramGoesOn) {
  int status = 0;
  std::string text = StderrOf(
      [] {
        if (!InstallStackDump(SignalText().c_str())) _exit(3);
        raise(SIGUSR1);
        raise(SIGUSR1);
        _exit(7);
      },
      status);
  EXPECT_EQ(WEXITSTATUS(status), 7) << status;
  EXPECT_TRUE(text.starts_with("muster: stack of the main thread of process ")) << text;
  EXPECT_NE(text.find("\n  #0 0x"), std::string::npos) << text;
  // Truncated paths would not be this one's fault.
  EXPECT_NE(text.find(OwnPath().substr(0, 150)), std::string::npos) << text;
  size_t second = text.find("muster: stack of", 1);
  EXPECT_NE(second, std::string::npos) << text;
}

TEST(StackDump, AnotherThreadPassesTheSignalToTheMainOne) {
  int status = 0;
  std::string text = StderrOf(
      [] {
        if (!InstallStackDump(SignalText().c_str())) _exit(3);
        sigset_t mask;
        sigset_t before;
        sigemptyset(&mask);
        sigaddset(&mask, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &mask, &before);
        std::thread other([&] {
          // Blocked in the main thread: only this one can take it.
          pthread_sigmask(SIG_SETMASK, &before, nullptr);
          kill(getpid(), SIGUSR1);
        });
        other.join();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        _exit(7);
      },
      status);
  EXPECT_EQ(WEXITSTATUS(status), 7) << status;
  EXPECT_TRUE(text.starts_with("muster: stack of the main thread of process ")) << text;
}

void Own(int /*signal*/) { _exit(9); }

TEST(StackDump, AProgramsOwnFunctionStays) {
  int status = 0;
  std::string text = StderrOf(
      [] {
        signal(SIGUSR1, Own);
        if (InstallStackDump(SignalText().c_str())) _exit(3);
        raise(SIGUSR1);
      },
      status);
  EXPECT_EQ(WEXITSTATUS(status), 9);
  EXPECT_EQ(text, "");
}

TEST(StackDump, OddValuesDoNothing) {
  for (const char* value :
       {static_cast<const char*>(nullptr), "", "0", "-1", "9", "x", "10x", "99999999999", "4711"}) {
    EXPECT_FALSE(InstallStackDump(value)) << (value != nullptr ? value : "null");
  }
  struct sigaction action {};
  sigaction(SIGUSR1, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace muster
