#include "launcher/ssh/piped_process.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

struct Ended {
  std::string out;
  std::string err;
  int status = -1;
};

// Reads until both streams have ended.
Ended Finish(PipedProcess& process) {
  Ended ended;
  while (process.output_fd() >= 0 || process.errors_fd() >= 0) {
    pollfd fds[] = {{.fd = process.output_fd(), .events = POLLIN, .revents = 0},
                    {.fd = process.errors_fd(), .events = POLLIN, .revents = 0},
                    {.fd = process.input_fd(), .events = POLLOUT, .revents = 0}};
    EXPECT_GE(poll(fds, 3, 30'000), 0);
    process.Flush();
    ended.out += process.ReadOutput(1 << 20);
    ended.err += process.ReadErrors(1 << 20);
  }
  std::optional<int> status;
  while (!(status = process.Status()).has_value()) poll(nullptr, 0, 1);
  ended.status = *status;
  return ended;
}

TEST(PipedProcess, CarriesAllThreeStreamsAndTheCode) {
  PipedProcess process({"sh", "-c", "cat; echo no >&2; exit 3"}, true);
  ASSERT_EQ(process.error(), 0);
  // More than a pipe holds.
  const std::string text(1 << 20, 'x');
  process.Send(text);
  EXPECT_GE(process.input_fd(), 0);
  std::string out;
  while (process.input_fd() >= 0) {
    process.Flush();
    out += process.ReadOutput(1 << 20);
  }
  process.CloseInput();
  Ended ended = Finish(process);
  EXPECT_EQ(out + ended.out, text);
  EXPECT_EQ(ended.err, "no\n");
  EXPECT_EQ(ended.status, 3);
}

TEST(PipedProcess, TellsWhyItCannotBeStarted) {
  EXPECT_EQ(PipedProcess({"/no/such/program"}, false).error(), ENOENT);
  EXPECT_EQ(PipedProcess({"/"}, false).error(), EACCES);
}

TEST(PipedProcess, KillReachesWhatItHasStarted) {
  PipedProcess process({"sh", "-c", "sleep 1000 & echo up; wait"}, false);
  ASSERT_EQ(process.error(), 0);
  pollfd fd{.fd = process.output_fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&fd, 1, 30'000), 1);
  process.Kill(SIGKILL);
  // The streams end with the last that holds them.
  EXPECT_EQ(Finish(process).status, 128 + SIGKILL);
}

// Of a process that has closed one of its standard streams; 0: the child had all three.
int RunWithout(int stream) {
  const pid_t pid = fork();
  if (pid == 0) {
    close(stream);
    PipedProcess process({"sh", "-c", "cat; echo no >&2; exit 3"}, false);
    process.Send("x");
    process.CloseInput();
    const Ended ended = Finish(process);
    _exit(ended.out == "x" && ended.err == "no\n" && ended.status == 3 ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

TEST(PipedProcess, CarriesAllThreeStreamsWhereWeLackOne) {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    EXPECT_EQ(RunWithout(stream), 0) << stream;
  }
}

TEST(PipedProcess, ReadsNoMoreThanItIsAskedFor) {
  PipedProcess process({"sh", "-c", "printf 123456789"}, false);
  ASSERT_EQ(process.error(), 0);
  std::string out;
  while (process.output_fd() >= 0) {
    const std::string bytes = process.ReadOutput(4);
    EXPECT_LE(bytes.size(), 4U);
    out += bytes;
  }
  EXPECT_EQ(out, "123456789");
}

TEST(PipedProcess, HasASessionOfItsOwn) {
  PipedProcess process({"sh", "-c", "ps -o sid= -p $$; echo $$"}, false);
  ASSERT_EQ(process.error(), 0);
  const std::string out = Finish(process).out;
  const size_t end = out.find('\n');
  EXPECT_EQ(std::stoi(out), std::stoi(out.substr(end + 1)));
}

}  // namespace
}  // namespace muster::launcher
