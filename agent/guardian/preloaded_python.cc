#include "agent/guardian/preloaded_python.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "agent/guardian/guardian_channel.h"
#include "base/clock.h"

namespace muster::agent::guardian {
namespace {

constexpr char kProgram[] =
#include "agent/guardian/preload_source.inc"
    ;
// The source is an argument: it stays in the way of nobody's __main__, and leaves room on the
// command line for that of the worker.
constexpr char kBootstrap[] =
    "import sys;exec(compile(sys.argv.pop(1),'<preload>','exec'),{'__name__':'muster_preload'})";

// Imports from a file server that many nodes ask at once take long; the workers wait meanwhile.
constexpr Duration kLoadPatience = std::chrono::minutes(2);
// A fork takes milliseconds. The guardian's agent gives it ten seconds to answer.
constexpr Duration kForkPatience = std::chrono::seconds(2);

bool WaitFor(int fd, short events, Instant end) {
  while (true) {
    Duration left = end - SystemClock().Now();
    if (left <= Duration(0)) return false;
    pollfd polled{fd, events, 0};
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    int ready = poll(&polled, 1, static_cast<int>(ms));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// The first bytes carry the descriptors.
ssize_t SendWithDescriptors(int socket, std::string_view bytes, const int (&fds)[3]) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(fds))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(fds));
  std::memcpy(CMSG_DATA(header), fds, sizeof(fds));
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

bool StartsWith(std::string_view text, std::string_view begin, std::string_view& rest) {
  if (!text.starts_with(begin)) return false;
  rest = text.substr(begin.size());
  return true;
}

}  // namespace

PreloadedPython::~PreloadedPython() {
  if (socket_ >= 0) close(socket_);
  if (exec_pipe_ >= 0) close(exec_pipe_);
}

void PreloadedPython::Start(const WorkerImage& image, const std::string& modules) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return Lose(std::strerror(errno));
  }
  // The launcher makes "PYTHON -u [-m] SCRIPT ..."; all after -u is the worker's.
  WorkerImage own = image;
  own.argv = {image.argv.front(), "-u", "-c", kBootstrap, kProgram, modules};
  own.argv.insert(own.argv.end(), image.argv.begin() + 2, image.argv.end());
  own.stdin_fd = ends[1];
  own.stdout_fd = -1;
  own.stderr_fd = -1;
  ForkedWorker forked = ForkWorker(own);
  close(ends[1]);
  socket_ = ends[0];
  if (forked.pid < 0) return Lose(std::strerror(forked.error));
  pid_ = forked.pid;
  exec_pipe_ = forked.exec_pipe;
  state_ = State::kLoading;
  deadline_ = SystemClock().Now() + kLoadPatience;
  // So that it can tell what Python, or a script in its place, has changed in its environment.
  if (!Send(image)) Lose("its process takes no request");
}

void PreloadedPython::Receive() {
  char bytes[4096];
  ssize_t got = recv(socket_, bytes, sizeof(bytes), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) received_.append(bytes, static_cast<size_t>(got));
  std::string_view reason;
  while (std::optional<std::string> line = is_loading() ? NextLine() : std::nullopt) {
    if (*line == "ready") {
      state_ = State::kReady;
    } else if (StartsWith(*line, "refused ", reason)) {
      return Lose(std::string(reason));
    }
  }
  if (got > 0) return;
  int error = 0;
  if (exec_pipe_ >= 0 && read(exec_pipe_, &error, sizeof(error)) == sizeof(error)) {
    return Lose(std::string("it can't be started: ") + std::strerror(error));
  }
  Lose("its process ended");
}

void PreloadedPython::TimePassed(Instant now) {
  if (is_loading() && now >= deadline_) Lose("the imports didn't end within two minutes");
}

std::optional<std::string> PreloadedPython::NextLine() {
  size_t end = received_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

bool PreloadedPython::Send(const WorkerImage& image) {
  BodyWriter body;
  body.Texts(image.argv).Texts(image.environment).Int(image.ignores_child_signal ? 1 : 0);
  body.Ints(image.cpus);
  const std::string request = body.Take();
  BodyWriter head;
  head.Int(static_cast<int64_t>(request.size()));
  const std::string bytes = head.Take() + request;
  const int fds[3] = {image.stdin_fd >= 0 ? image.stdin_fd : STDIN_FILENO,
                      image.stdout_fd >= 0 ? image.stdout_fd : STDOUT_FILENO,
                      image.stderr_fd >= 0 ? image.stderr_fd : STDERR_FILENO};
  Instant end = SystemClock().Now() + kForkPatience;
  size_t sent = 0;
  while (sent < bytes.size()) {
    std::string_view rest = std::string_view(bytes).substr(sent);
    ssize_t put = sent == 0 ? SendWithDescriptors(socket_, rest, fds)
                            : send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (put > 0) {
      sent += static_cast<size_t>(put);
    } else if (errno != EINTR && (errno != EAGAIN || !WaitFor(socket_, POLLOUT, end))) {
      return false;
    }
  }
  return true;
}

std::optional<pid_t> PreloadedPython::Fork(const WorkerImage& image) {
  if (!is_ready()) return std::nullopt;
  if (!Send(image)) {
    Lose("its process takes no request");
    return std::nullopt;
  }
  Instant end = SystemClock().Now() + kForkPatience;
  std::optional<std::string> line;
  while (!(line = NextLine())) {
    char bytes[4096];
    ssize_t got = recv(socket_, bytes, sizeof(bytes), 0);
    if (got > 0) {
      received_.append(bytes, static_cast<size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      Lose("its process ended");
      return std::nullopt;
    } else if (!WaitFor(socket_, POLLIN, end)) {
      Lose("its process didn't fork a worker within two seconds");
      return std::nullopt;
    }
  }
  std::string_view rest;
  pid_t pid = -1;
  if (StartsWith(*line, "pid ", rest) &&
      std::from_chars(rest.data(), rest.data() + rest.size(), pid).ec == std::errc() && pid > 0) {
    return pid;
  }
  Lose(StartsWith(*line, "failed ", rest) ? std::string(rest)
                                          : "its process said \"" + *line + "\"");
  return std::nullopt;
}

void PreloadedPython::Ended() {
  pid_ = -1;
  if (state_ != State::kLost) Lose("its process ended");
}

void PreloadedPython::Lose(const std::string& why) {
  state_ = State::kLost;
  news_ = why;
  if (socket_ >= 0) close(std::exchange(socket_, -1));
  if (exec_pipe_ >= 0) close(std::exchange(exec_pipe_, -1));
  // It may be frozen, or deep in an import.
  if (pid_ > 0) kill(pid_, SIGKILL);
}

std::optional<std::string> PreloadedPython::TakeNews() {
  return std::exchange(news_, std::nullopt);
}

}  // namespace muster::agent::guardian
