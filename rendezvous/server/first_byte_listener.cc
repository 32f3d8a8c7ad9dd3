#include "rendezvous/server/first_byte_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "rendezvous/server/listening_sockets.h"

namespace muster::rendezvous {
namespace {

constexpr uint8_t kHttp2Preface = 'P';
constexpr uint8_t kTlsHello = 0x16;
// How long to leave the sockets alone when the process has no file descriptor left.
constexpr Duration kPause = std::chrono::milliseconds(100);
// Accepted in one go before others are looked at: as many as the kernel keeps waiting (somaxconn is
// 4096 by default), since it drops those that come while it is full, and they try again a second
// later.
constexpr size_t kMaxAcceptsInARow = 4096;

bool Watch(int epoll_fd, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

// Small messages go out at once, and the kernel notices in about a minute that a node is gone, so
// that its connection doesn't stay for ever.
void Tune(int fd) {
  int on = 1, idle_s = 30, interval_s = 10, count = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FirstByteListener>> FirstByteListener::Listen(
    const FirstByteListenerOptions& options) {
  absl::StatusOr<ListeningSockets> sockets = OpenListeningSockets(options.host, options.port);
  if (!sockets.ok()) return sockets.status();
  std::unique_ptr<FirstByteListener> listener(
      new FirstByteListener(options, std::move(sockets->fds), sockets->port));
  if (listener->epoll_fd_ < 0 || listener->wake_fd_ < 0)
    return absl::UnavailableError(absl::StrCat("can't listen: ", std::strerror(errno)));
  return listener;
}

FirstByteListener::FirstByteListener(const FirstByteListenerOptions& options,
                                     std::vector<int> sockets, uint16_t port)
    : options_(options),
      sockets_(std::move(sockets)),
      port_(port),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

FirstByteListener::~FirstByteListener() {
  Stop();
  if (epoll_fd_ >= 0) close(epoll_fd_);
  if (wake_fd_ >= 0) close(wake_fd_);
}

void FirstByteListener::Start(GrpcAcceptor* grpc, NonGrpcAcceptor* other) {
  grpc_ = grpc;
  other_ = other;
  for (int fd : sockets_) Watch(epoll_fd_, fd);
  Watch(epoll_fd_, wake_fd_);
  {
    base::MutexLock lock(mutex_);
    is_running_ = true;
  }
  thread_ = std::thread([this] { Run(); });
}

void FirstByteListener::Stop() {
  if (stopped_) return;
  stopped_ = true;
  if (thread_.joinable()) {
    {
      base::MutexLock lock(mutex_);
      is_stopping_ = true;
    }
    Wake();
    thread_.join();
  }
  for (const Silent& silent : silent_) close(silent.fd);
  silent_.clear();
  by_fd_.clear();
  for (int fd : sockets_) close(fd);
}

void FirstByteListener::DisownEarlier() {
  base::MutexLock lock(mutex_);
  if (!is_running_) return;
  const uint64_t mine = ++disowns_asked_;
  Wake();
  while (is_running_ && disowns_done_ < mine) changed_.wait(mutex_);
}

void FirstByteListener::Wake() const {
  uint64_t one = 1;
  while (write(wake_fd_, &one, sizeof(one)) < 0 && errno == EINTR) continue;
}

bool FirstByteListener::DoWhatWasAsked() {
  uint64_t count = 0;
  [[maybe_unused]] ssize_t got = read(wake_fd_, &count, sizeof(count));
  uint64_t asked = 0;
  {
    base::MutexLock lock(mutex_);
    if (is_stopping_) return false;
    asked = disowns_asked_;
    if (asked == disowns_done_) return true;
  }
  for (int fd : sockets_) {
    while (AcceptAll(fd) == kMaxAcceptsInARow) continue;
  }
  for (Silent& silent : silent_) silent.is_disowned = true;
  base::MutexLock lock(mutex_);
  disowns_done_ = asked;
  changed_.notify_all();
  return true;
}

void FirstByteListener::Run() {
  std::array<epoll_event, 64> events;
  bool is_stopped = false;
  while (!is_stopped) {
    int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()),
                           WaitMs(SystemClock().Now()));
    Instant now = SystemClock().Now();
    for (int i = 0; i < count && !is_stopped; ++i) {
      int fd = events[i].data.fd;
      if (fd == wake_fd_)
        is_stopped = !DoWhatWasAsked();
      else if (std::find(sockets_.begin(), sockets_.end(), fd) != sockets_.end())
        AcceptAll(fd);
      else
        LookAt(fd);
    }
    if (is_stopped) break;
    DropExpired(now);
    if (!paused_until_.IsNever() && now >= paused_until_) SetPaused(false, now);
  }
  base::MutexLock lock(mutex_);
  is_running_ = false;
  changed_.notify_all();
}

int FirstByteListener::WaitMs(Instant now) const {
  Instant next = paused_until_;
  if (!silent_.empty()) next = std::min(next, silent_.front().deadline);
  if (next.IsNever()) return -1;
  auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now);
  return static_cast<int>(std::max<int64_t>(wait.count(), 0));
}

void FirstByteListener::SetPaused(bool paused, Instant now) {
  paused_until_ = paused ? now + kPause : Instant::Never();
  for (int fd : sockets_) {
    if (paused)
      epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
    else
      Watch(epoll_fd_, fd);
  }
}

size_t FirstByteListener::AcceptAll(int listening_fd) {
  Instant now = SystemClock().Now();
  std::vector<int> accepted;
  while (accepted.size() < kMaxAcceptsInARow) {
    int fd = accept4(listening_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (full && paused_until_.IsNever()) SetPaused(true, now);
      // ECONNABORTED and the like concern one connection: epoll comes back for the others.
      break;
    }
    accepted.push_back(fd);
  }
  // Only now, for handing one on takes ten times as long as accepting it.
  for (int fd : accepted) Admit(fd, now);
  return accepted.size();
}

void FirstByteListener::Admit(int fd, Instant now) {
  if (silent_.size() >= options_.max_silent) {
    int oldest = silent_.front().fd;
    Forget(oldest);
    close(oldest);
  }
  Tune(fd);
  if (!Watch(epoll_fd_, fd)) {
    close(fd);
    return;
  }
  silent_.push_back({fd, now + options_.first_byte_timeout});
  by_fd_[fd] = std::prev(silent_.end());
  // Usually the first byte is there already.
  LookAt(fd);
}

void FirstByteListener::LookAt(int fd) {
  // An event of this round may be for a connection that has been closed since.
  if (!by_fd_.contains(fd)) return;
  uint8_t first = 0;
  ssize_t got = recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  const Silent connection = Forget(fd);
  if (got > 0 && (first == kHttp2Preface || first == kTlsHello)) {
    grpc_->Accept(fd);
  } else if (got > 0) {
    HandOn(connection, first);
  } else {
    close(fd);
  }
}

void FirstByteListener::HandOn(const Silent& connection, std::optional<uint8_t> first_byte) {
  if (other_ != nullptr && !connection.is_disowned) {
    other_->Accept(connection.fd, first_byte);
  } else {
    close(connection.fd);
  }
}

FirstByteListener::Silent FirstByteListener::Forget(int fd) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  auto found = by_fd_.find(fd);
  const Silent connection = *found->second;
  silent_.erase(found->second);
  by_fd_.erase(found);
  return connection;
}

void FirstByteListener::DropExpired(Instant now) {
  while (!silent_.empty() && silent_.front().deadline <= now) {
    HandOn(Forget(silent_.front().fd), std::nullopt);
  }
}

}  // namespace muster::rendezvous
