#include "worker_sdk/context/agent_channel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/version.h"

namespace muster {
namespace {

using SteadyClock = std::chrono::steady_clock;
using worker_channel::Decoded;
using worker_channel::Message;

constexpr size_t kReadBytes = 64u << 10;

int MillisecondsUntil(SteadyClock::time_point when) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(when - SteadyClock::now()).count();
  return left <= 0 ? 0 : static_cast<int>(left);
}

Status Gone(const std::string& why) {
  return {StatusCode::kUnavailable,
          "the muster agent of this worker can't be reached: " + why +
              "; was this process started by a `muster run` that has ended?"};
}

// Appends what there is to `buffer`: the number of bytes, 0 at the end, -1 with errno.
ssize_t ReadMore(int fd, std::string& buffer) {
  std::array<char, kReadBytes> bytes;
  ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got > 0) buffer.append(bytes.data(), static_cast<size_t>(got));
  return got;
}

// Gives the request its number; false if it is no request.
bool Number(Message& message, uint64_t number) {
  return std::visit(
      [number](auto& m) {
        if constexpr (requires { m.request; } &&
                      !std::is_same_v<std::decay_t<decltype(m)>, worker_channel::Answer>) {
          m.request = number;
          return true;
        }
        return false;
      },
      message);
}

}  // namespace

AgentChannel::AgentChannel(int fd, AbortSignal& abort)
    : fd_(fd), owner_(getpid()), abort_(abort), stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_CHECK(stop_fd_ >= 0);
}

Result<std::unique_ptr<AgentChannel>> AgentChannel::Open(const AgentAddress& agent,
                                                         AbortSignal& abort,
                                                         std::chrono::milliseconds patience) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Gone(std::strerror(errno));
  // unique_ptr from here on: it closes the descriptor on every way out.
  std::unique_ptr<AgentChannel> channel(new AgentChannel(fd, abort));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, agent.socket.data(), agent.socket.size());
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + agent.socket.size());
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) {
    return Gone(std::strerror(errno));
  }
  // An abstract name has no owner: anybody may take it once the agent is gone.
  ucred peer{};
  socklen_t peer_size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 ||
      (peer.uid != geteuid() && peer.uid != 0)) {
    return Gone("its socket belongs to user " + std::to_string(peer.uid));
  }
  Status status = channel->Introduce(agent.worker_id, patience);
  if (!status.ok()) return status;
  channel->control_ = std::make_unique<std::thread>([c = channel.get()] { c->ReadUntilTheEnd(); });
  return channel;
}

AgentChannel::~AgentChannel() {
  if (getpid() == owner_ && control_) {
    uint64_t one = 1;
    MUSTER_CHECK(write(stop_fd_, &one, sizeof(one)) == sizeof(one));
    control_->join();
  } else {
    // The thread exists in the parent only.
    (void)control_.release();
  }
  close(fd_);
  close(stop_fd_);
}

Status AgentChannel::Introduce(const std::string& worker_id, std::chrono::milliseconds patience) {
  auto deadline = SteadyClock::now() + patience;
  Status sent = SendAll(worker_channel::Encode(
      worker_channel::Hello{worker_id, static_cast<int64_t>(getpid()), std::string(kVersion)}));
  if (!sent.ok()) return Gone(sent.message());
  for (;;) {
    Decoded decoded = worker_channel::Decode(received_);
    if (decoded.kind == Decoded::Kind::kMalformed) return Gone("it sends " + decoded.problem);
    if (decoded.kind == Decoded::Kind::kMessage) {
      received_.erase(0, decoded.consumed);
      if (auto* welcome = std::get_if<worker_channel::Welcome>(&decoded.message)) {
        welcome_ = std::move(*welcome);
        return {};
      }
      if (auto* abort = std::get_if<worker_channel::Abort>(&decoded.message)) {
        return {StatusCode::kAborted, "the agent refuses this worker: " + abort->reason};
      }
      return Gone("its first message isn't a welcome");
    }
    pollfd fd{fd_, POLLIN, 0};
    int left = MillisecondsUntil(deadline);
    if (left == 0) return Gone("no answer within " + std::to_string(patience.count()) + " ms");
    (void)poll(&fd, 1, left);
    ssize_t got = ReadMore(fd_, received_);
    if (got == 0) return Gone("it closed the connection without an answer");
    if (got < 0 && errno != EAGAIN && errno != EINTR) return Gone(std::strerror(errno));
  }
}

Status AgentChannel::SendAll(const std::string& frame) {
  // Under a lock, so that frames don't mix. The agent reads always; if it doesn't, the abort
  // signal ends the wait.
  base::MutexLock lock(send_mutex_);
  return SendRest(frame);
}

Status AgentChannel::SendRest(std::string_view rest) {
  while (!rest.empty()) {
    ssize_t n = send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      rest.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      std::array<pollfd, 2> fds = {pollfd{fd_, POLLOUT, 0}, pollfd{abort_.fd(), POLLIN, 0}};
      (void)poll(fds.data(), fds.size(), -1);
      if (abort_.IsRaised()) return abort_.status();
    } else if (errno != EINTR) {
      return {StatusCode::kUnavailable, std::strerror(errno)};
    }
  }
  return {};
}

void AgentChannel::SendOrDrop(const std::string& frame) {
  // Somebody else sends, which may take a while.
  if (!send_mutex_.try_lock()) return;
  ssize_t n = send(fd_, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // Half a frame can't be left; the kernel takes one this small as a whole or not at all.
  if (n > 0) (void)SendRest(std::string_view(frame).substr(static_cast<size_t>(n)));
  send_mutex_.unlock();
}

bool AgentChannel::StepDone(int64_t step, bool can_save) {
  if (getpid() != owner_ || step < 0 || abort_.IsRaised()) return false;
  SendOrDrop(worker_channel::Encode(worker_channel::StepDone{step, can_save}));
  if (!can_save) return false;
  if (is_wanted_.exchange(false)) {
    // No rank can have passed the next step, since that needs ours. Whoever hears of it will save
    // after it, so this rank does too, whatever becomes of the answer.
    AgreeOn(step + 1);
    (void)Call(worker_channel::AnnounceCheckpoint{0, step + 1}, std::nullopt);
    return false;
  }
  int64_t agreed = save_at_.load();
  return agreed != kNoStep && step >= agreed && save_at_.compare_exchange_strong(agreed, kNoStep);
}

void AgentChannel::AgreeOn(int64_t step) {
  if (step <= last_agreed_.load()) return;
  last_agreed_.store(step);
  save_at_.store(step);
}

Result<std::string> AgentChannel::Call(Message request,
                                       std::optional<std::chrono::milliseconds> patience) {
  if (getpid() != owner_) {
    return Status(StatusCode::kFailedPrecondition,
                  "this process was forked from worker process " + std::to_string(owner_) +
                      ", to whom the channel to the agent belongs; make a context of its own");
  }
  if (abort_.IsRaised()) return abort_.status();
  PeerWaits::Wait wait(&peer_waits_);
  auto deadline = SteadyClock::now() + patience.value_or(std::chrono::milliseconds(0));
  uint64_t number = 0;
  {
    base::MutexLock lock(mutex_);
    number = ++last_request_;
    calls_[number] = std::nullopt;
  }
  MUSTER_CHECK(Number(request, number));
  std::string frame = worker_channel::Encode(request);
  Status sent = frame.size() > worker_channel::kMaxFrame
                    ? Status(StatusCode::kInvalidArgument,
                             "a request of " + std::to_string(frame.size()) +
                                 " bytes is larger than the agent takes (" +
                                 std::to_string(worker_channel::kMaxFrame) + ")")
                    : SendAll(frame);
  base::MutexLock lock(mutex_);
  auto it = calls_.find(number);
  while (sent.ok() && !it->second && !has_ended_) {
    if (!patience) {
      answered_.wait(mutex_);
    } else if (answered_.wait_until(mutex_, deadline) == std::cv_status::timeout) {
      sent = Status(StatusCode::kDeadlineExceeded,
                    "the agent didn't answer within " + std::to_string(patience->count()) + " ms");
    }
  }
  std::optional<worker_channel::Answer> answer = std::move(it->second);
  calls_.erase(it);
  if (answer && answer->code == 0) return std::move(answer->value);
  if (answer) return Status(static_cast<StatusCode>(answer->code), std::move(answer->message));
  if (abort_.IsRaised()) return abort_.status();
  return sent;
}

void AgentChannel::ReadUntilTheEnd() {
  for (;;) {
    Decoded decoded = worker_channel::Decode(received_);
    if (decoded.kind == Decoded::Kind::kMalformed) {
      return End(-1, "the agent sends " + decoded.problem);
    }
    if (decoded.kind == Decoded::Kind::kMessage) {
      received_.erase(0, decoded.consumed);
      if (!Take(decoded.message)) return End(-1, "the agent sends what a worker can't take");
      continue;
    }
    std::array<pollfd, 2> fds = {pollfd{fd_, POLLIN, 0}, pollfd{stop_fd_, POLLIN, 0}};
    (void)poll(fds.data(), fds.size(), -1);
    if (fds[1].revents != 0) return;
    ssize_t got = ReadMore(fd_, received_);
    bool is_broken = got < 0 && errno != EAGAIN && errno != EINTR;
    if (got == 0 || is_broken) return End(-1, "the agent is gone");
  }
}

bool AgentChannel::Take(const Message& message) {
  if (const auto* abort = std::get_if<worker_channel::Abort>(&message)) {
    // Of another world it is late, and about workers that are gone.
    if (abort->world_id == welcome_.world.id) End(abort->culprit.value, abort->reason);
    return true;
  }
  if (std::holds_alternative<worker_channel::CheckpointWanted>(message)) {
    // Only rank 0 is asked; another would wait for an answer that nobody owes it.
    is_wanted_.store(welcome_.rank == Rank(0));
    return true;
  }
  if (const auto* at = std::get_if<worker_channel::CheckpointAt>(&message)) {
    AgreeOn(at->step);
    (void)SendAll(worker_channel::Encode(worker_channel::CheckpointKnown{at->step}));
    return true;
  }
  if (const auto* ping = std::get_if<worker_channel::Ping>(&message)) {
    AnswerPing(ping->number);
    return true;
  }
  const auto* answer = std::get_if<worker_channel::Answer>(&message);
  if (answer == nullptr) return false;
  base::MutexLock lock(mutex_);
  // Nobody may wait any more.
  auto it = calls_.find(answer->request);
  if (it != calls_.end()) it->second = *answer;
  answered_.notify_all();
  return true;
}

// Doesn't wait for the agent to read, since this thread must go on reading: it asks again. A frame
// of a few bytes goes whole or not at all.
void AgentChannel::AnswerPing(uint64_t number) {
  std::string frame = worker_channel::Encode(worker_channel::Pong{number, peer_waits_.activity()});
  base::MutexLock lock(send_mutex_);
  (void)send(fd_, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void AgentChannel::End(int lost_rank, const std::string& reason) {
  abort_.Raise(lost_rank, reason);
  base::MutexLock lock(mutex_);
  has_ended_ = true;
  answered_.notify_all();
}

}  // namespace muster
