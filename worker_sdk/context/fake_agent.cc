#include "worker_sdk/context/fake_agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/entropy.h"
#include "base/env.h"
#include "worker_sdk/context/status.h"

namespace muster {
namespace {

using worker_channel::Decoded;

int WaitFor(std::chrono::steady_clock::time_point until) {
  auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  return left.count() < 0 ? 0 : static_cast<int>(left.count());
}

}  // namespace

FakeAgent::FakeAgent(int world_size)
    : socket_name_("muster-fake-agent-" + base::FreshId<WorldId>().ToHex()),
      listen_fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, socket_name_.data(), socket_name_.size());
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket_name_.size());
  MUSTER_CHECK(bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  MUSTER_CHECK(listen(listen_fd_, 64) == 0);
  welcome_.world = {RoundId(1), base::FreshId<WorldId>()};
  welcome_.key = base::FreshId<RoundKey>();
  welcome_.world_size = world_size;
  welcome_.local_world_size = world_size;
  welcome_.address = "127.0.0.1";
}

FakeAgent::~FakeAgent() {
  {
    base::MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  uint64_t one = 1;
  MUSTER_CHECK(write(wake_fd_, &one, sizeof(one)) == sizeof(one));
  if (thread_.joinable()) thread_.join();
  for (Connection& connection : connections_) close(connection.fd);
  close(listen_fd_);
  close(wake_fd_);
}

void FakeAgent::Start() {
  thread_ = std::thread([this] { Serve(); });
}

void FakeAgent::SetEnvironment(int rank) const {
  setenv(env::kAgentSocket, socket_name_.c_str(), 1);
  setenv(env::kWorkerId, WorkerId(rank).c_str(), 1);
  setenv(env::kRank, std::to_string(rank).c_str(), 1);
}

void FakeAgent::PushAbort(const worker_channel::Abort& abort) { Push(abort); }

void FakeAgent::Agree() {
  // To whom it is no answer, it is late, and ignored.
  std::vector<int64_t> announced = AwaitAnnouncements(1);
  base::MutexLock lock(mutex_);
  MUSTER_CHECK(!announced.empty());
  pushes_.emplace_back(worker_channel::Answer{announcement_, 0, "", ""});
  uint64_t one = 1;
  MUSTER_CHECK(write(wake_fd_, &one, sizeof(one)) == sizeof(one));
}

namespace {

template <class T>
std::vector<T> Await(base::Mutex& mutex, std::condition_variable_any& heard,
                     const std::vector<T>& what, size_t count) {
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (what.size() < count) {
    if (heard.wait_until(mutex, until) == std::cv_status::timeout) break;
  }
  return what;
}

}  // namespace

std::vector<worker_channel::StepDone> FakeAgent::AwaitSteps(size_t count) {
  base::MutexLock lock(mutex_);
  return Await(mutex_, heard_, steps_, count);
}

std::vector<int64_t> FakeAgent::AwaitAnnouncements(size_t count) {
  base::MutexLock lock(mutex_);
  return Await(mutex_, heard_, announced_, count);
}

std::vector<int64_t> FakeAgent::AwaitKnown(size_t count) {
  base::MutexLock lock(mutex_);
  return Await(mutex_, heard_, known_, count);
}

void FakeAgent::PushPing(uint64_t number) { Push(worker_channel::Ping{number}); }

void FakeAgent::Push(worker_channel::Message message) {
  {
    base::MutexLock lock(mutex_);
    pushes_.push_back(std::move(message));
  }
  uint64_t one = 1;
  MUSTER_CHECK(write(wake_fd_, &one, sizeof(one)) == sizeof(one));
}

std::vector<worker_channel::Pong> FakeAgent::AwaitPongs(size_t count) {
  base::MutexLock lock(mutex_);
  return Await(mutex_, heard_, pongs_, count);
}

std::vector<worker_channel::ShardDone> FakeAgent::shards() {
  base::MutexLock lock(mutex_);
  return shards_;
}

std::vector<Commit> FakeAgent::commits() {
  base::MutexLock lock(mutex_);
  return commits_;
}

void FakeAgent::Serve() {
  for (;;) {
    std::vector<pollfd> fds = {{wake_fd_, POLLIN, 0}, {listen_fd_, POLLIN, 0}};
    for (const Connection& c : connections_) fds.push_back({c.fd, POLLIN, 0});
    int timeout = 1000;
    for (const Waiting& w : waiting_) timeout = std::min(timeout, WaitFor(w.until));
    (void)poll(fds.data(), fds.size(), timeout);
    uint64_t count = 0;
    (void)!read(wake_fd_, &count, sizeof(count));
    std::vector<worker_channel::Message> pushes;
    {
      base::MutexLock lock(mutex_);
      if (is_stopping_) return;
      pushes.swap(pushes_);
    }
    for (const auto& push : pushes) {
      for (const Connection& c : connections_) Reply(c.fd, push);
    }
    for (int fd = 0; (fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      connections_.push_back({fd, {}});
    }
    for (auto it = connections_.begin(); it != connections_.end();) {
      std::array<char, 65536> bytes;
      ssize_t got = recv(it->fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got > 0) it->received.append(bytes.data(), static_cast<size_t>(got));
      Decoded decoded = worker_channel::Decode(it->received);
      for (; decoded.kind == Decoded::Kind::kMessage;
           decoded = worker_channel::Decode(it->received)) {
        it->received.erase(0, decoded.consumed);
        Take(*it, decoded.message);
      }
      if (got == 0 || (got < 0 && errno != EAGAIN)) {
        waiting_.remove_if([&](const Waiting& w) { return w.fd == it->fd; });
        close(it->fd);
        it = connections_.erase(it);
      } else {
        ++it;
      }
    }
    AnswerWaiting();
  }
}

void FakeAgent::Take(Connection& connection, const worker_channel::Message& message) {
  if (is_silent_) return;
  auto answer = [&](uint64_t request) {
    Reply(connection.fd, worker_channel::Answer{request, 0, "", ""});
  };
  if (const auto* hello = std::get_if<worker_channel::Hello>(&message)) {
    if (!greeting_.empty()) {
      (void)send(connection.fd, greeting_.data(), greeting_.size(), MSG_NOSIGNAL);
      return;
    }
    worker_channel::Welcome welcome = welcome_;
    welcome.rank = Rank(std::atoi(hello->worker_id.c_str() + std::strlen("fake/")));
    welcome.local_rank = LocalRank(welcome.rank.value);
    Reply(connection.fd, welcome);
  } else if (const auto* set = std::get_if<worker_channel::SetKey>(&message)) {
    values_[set->key] = set->value;
    answer(set->request);
  } else if (const auto* get = std::get_if<worker_channel::GetKey>(&message)) {
    waiting_.push_back(
        {connection.fd, *get,
         std::chrono::steady_clock::now() + std::chrono::milliseconds(get->wait_ms)});
  } else if (const auto* pong = std::get_if<worker_channel::Pong>(&message)) {
    base::MutexLock lock(mutex_);
    pongs_.push_back(*pong);
    heard_.notify_all();
  } else if (const auto* shard = std::get_if<worker_channel::ShardDone>(&message)) {
    base::MutexLock lock(mutex_);
    shards_.push_back(*shard);
    answer(shard->request);
  } else if (const auto* done = std::get_if<worker_channel::StepDone>(&message)) {
    base::MutexLock lock(mutex_);
    steps_.push_back(*done);
    heard_.notify_all();
  } else if (const auto* announced = std::get_if<worker_channel::AnnounceCheckpoint>(&message)) {
    base::MutexLock lock(mutex_);
    announcement_ = announced->request;
    announced_.push_back(announced->step);
    heard_.notify_all();
  } else if (const auto* known = std::get_if<worker_channel::CheckpointKnown>(&message)) {
    base::MutexLock lock(mutex_);
    known_.push_back(known->step);
    heard_.notify_all();
  } else if (const auto* commit = std::get_if<worker_channel::CommitPublished>(&message)) {
    base::MutexLock lock(mutex_);
    commits_.push_back(commit->commit);
    answer(commit->request);
  }
}

void FakeAgent::AnswerWaiting() {
  auto now = std::chrono::steady_clock::now();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    auto value = values_.find(it->request.key);
    if (value == values_.end() && now < it->until) {
      ++it;
      continue;
    }
    worker_channel::Answer answer{it->request.request, 0, "", ""};
    if (value != values_.end()) {
      answer.value = value->second;
    } else {
      answer.code = static_cast<uint8_t>(StatusCode::kDeadlineExceeded);
      answer.message = "nobody set key '" + it->request.key + "'";
    }
    Reply(it->fd, answer);
    it = waiting_.erase(it);
  }
}

void FakeAgent::Reply(int fd, const worker_channel::Message& message) {
  std::string frame = worker_channel::Encode(message);
  (void)send(fd, frame.data(), frame.size(), MSG_NOSIGNAL);
}

}  // namespace muster
