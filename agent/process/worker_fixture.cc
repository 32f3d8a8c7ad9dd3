#include "agent/process/worker_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/check.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

int LeftMs(steady_clock::time_point end) {
  auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

}  // namespace

LifePipe::LifePipe() {
  int ends[2];
  MUSTER_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  read_end_ = ends[0];
  write_end_ = ends[1];
}

LifePipe::~LifePipe() {
  CloseWriteEnd();
  close(read_end_);
}

int LifePipe::NewWriteEnd() const { return fcntl(write_end_, F_DUPFD_CLOEXEC, 0); }

void LifePipe::CloseWriteEnd() {
  if (write_end_ >= 0) close(write_end_);
  write_end_ = -1;
}

bool LifePipe::ReadUntil(const std::function<bool()>& is_enough, int patience_ms, bool* is_over) {
  auto end = steady_clock::now() + milliseconds(patience_ms);
  *is_over = false;
  while (!is_enough()) {
    pollfd readable{read_end_, POLLIN, 0};
    if (poll(&readable, 1, LeftMs(end)) == 0) {
      *is_over = true;
      return false;
    }
    char chunk[4096];
    ssize_t got = read(read_end_, chunk, sizeof(chunk));
    if (got == 0) return true;
    if (got > 0) text_.append(chunk, static_cast<size_t>(got));
  }
  return false;
}

bool LifePipe::WaitForText(const std::string& text, int patience_ms) {
  auto has_text = [&] { return text_.find(text) != std::string::npos; };
  bool is_over = false;
  ReadUntil(has_text, patience_ms, &is_over);
  return has_text();
}

bool LifePipe::WaitForEnd(int patience_ms) {
  CloseWriteEnd();
  bool is_over = false;
  return ReadUntil([] { return false; }, patience_ms, &is_over) && !is_over;
}

std::string TestWorkerPrefix() { return "guardian-test-" + std::to_string(getpid()); }

WorkerCommand ShellWorker(int local_rank, const std::string& script, const LifePipe* pipe) {
  WorkerCommand command;
  command.local_rank = LocalRank(local_rank);
  command.rank = Rank(local_rank);
  command.worker_id = TestWorkerPrefix() + "/1/" + std::to_string(local_rank);
  command.argv = {"sh", "-c", script};
  command.environment = {"PATH=/usr/bin:/bin", "MUSTER_WORKER_ID=" + command.worker_id};
  if (pipe != nullptr) {
    command.stdout_fd = pipe->NewWriteEnd();
    command.stderr_fd = pipe->NewWriteEnd();
  } else {
    command.stdout_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    command.stderr_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  }
  return command;
}

pid_t RunInChild(const std::function<void()>& body) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  body();
  _exit(0);
}

bool WaitForProcess(pid_t pid, int patience_ms) {
  int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return errno == ESRCH;
  pollfd ended{fd, POLLIN, 0};
  bool has_ended = poll(&ended, 1, patience_ms) == 1;
  close(fd);
  return has_ended;
}

int WaitForChild(pid_t pid, int patience_ms) {
  int status = 0;
  if (!WaitForProcess(pid, patience_ms)) return -1;
  return waitpid(pid, &status, 0) == pid ? status : -1;
}

}  // namespace muster::agent
