#include "launcher/ssh/piped_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "agent/guardian/descriptor_limit.h"

namespace muster::launcher {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

void Close(int& fd) {
  if (fd >= 0) close(std::exchange(fd, -1));
}

// Where we were started without one of the three standard streams a pipe would get its number, and
// be overwritten, or closed by exec, on its way to the child.
int MoveBehindStreams(int& fd) {
  if (fd > STDERR_FILENO) return 0;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (moved < 0) return errno;
  close(std::exchange(fd, moved));
  return 0;
}

int MakePipe(Pipe& made) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  made = {.read_end = ends[0], .write_end = ends[1]};
  const int error = MoveBehindStreams(made.read_end);
  return error != 0 ? error : MoveBehindStreams(made.write_end);
}

void Close(Pipe& pipe) {
  Close(pipe.read_end);
  Close(pipe.write_end);
}

void DontBlock(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

PipedProcess::PipedProcess(const std::vector<std::string>& argv, bool dies_with_us) {
  std::array<Pipe, 4> pipes;
  for (Pipe& each : pipes) {
    if (error_ == 0) error_ = MakePipe(each);
  }
  auto& [in, out, err, failure] = pipes;
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = getpid();
  if (error_ == 0) {
    pid_ = fork();
    if (pid_ < 0) error_ = errno;
  }
  if (pid_ == 0) {
    setsid();
    if (dies_with_us) prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    dup2(in.read_end, STDIN_FILENO);
    dup2(out.write_end, STDOUT_FILENO);
    dup2(err.write_end, STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    agent::guardian::RestoreDescriptorLimit();
    execvp(words.front(), words.data());
    const int why = errno;
    [[maybe_unused]] ssize_t told = write(failure.write_end, &why, sizeof(why));
    _exit(127);
  }
  Close(in.read_end);
  Close(out.write_end);
  Close(err.write_end);
  Close(failure.write_end);
  if (error_ == 0) {
    int why = 0;
    ssize_t count = 0;
    do {
      count = read(failure.read_end, &why, sizeof(why));
    } while (count < 0 && errno == EINTR);
    if (count == sizeof(why)) error_ = why;
  }
  Close(failure.read_end);
  if (error_ != 0) {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    for (Pipe& each : pipes) Close(each);
    return;
  }
  in_ = in.write_end;
  out_ = out.read_end;
  err_ = err.read_end;
  for (int fd : {in_, out_, err_}) DontBlock(fd);
}

PipedProcess::~PipedProcess() {
  for (int* fd : {&in_, &out_, &err_}) Close(*fd);
}

void PipedProcess::Send(const std::string& bytes) {
  if (in_ < 0) return;
  to_send_ += bytes;
  Flush();
}

void PipedProcess::Flush() {
  while (in_ >= 0 && !to_send_.empty()) {
    const ssize_t count = write(in_, to_send_.data(), to_send_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) return CloseInput();
    to_send_.erase(0, static_cast<size_t>(count));
  }
}

void PipedProcess::CloseInput() {
  to_send_.clear();
  Close(in_);
}

std::string PipedProcess::Read(int& fd, size_t most) {
  std::string bytes;
  std::array<char, 64 << 10> piece;
  while (fd >= 0 && bytes.size() < most) {
    const ssize_t count = read(fd, piece.data(), std::min(piece.size(), most - bytes.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      Close(fd);
      break;
    }
    bytes.append(piece.data(), static_cast<size_t>(count));
  }
  return bytes;
}

std::optional<int> PipedProcess::Status() {
  if (status_.has_value() || pid_ <= 0) return status_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

void PipedProcess::Kill(int signal) const {
  if (pid_ > 0 && !status_.has_value()) kill(-pid_, signal);
}

}  // namespace muster::launcher
