#include "rendezvous/client/fake_rendezvous_client.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace muster::rendezvous {

FakeRendezvousClient::FakeRendezvousClient(SessionObserver* observer, bool accepts_connections)
    : observer_(observer), accepts_(accepts_connections) {}

FakeRendezvousClient::~FakeRendezvousClient() { EndWaits(absl::CancelledError("closed")); }

uint64_t FakeRendezvousClient::Connect() {
  bool accepts = false;
  uint64_t connection = 0;
  {
    base::MutexLock lock(mutex_);
    connection = ++connection_;
    is_open_ = false;
    is_pending_ = true;
    accepts = accepts_;
  }
  changed_.notify_all();
  if (accepts) Accept();
  return connection;
}

void FakeRendezvousClient::ProbeEndpoint(ProbeCallback done) {
  bool accepts = false;
  {
    base::MutexLock lock(mutex_);
    accepts = accepts_;
  }
  done(!accepts);
}

void FakeRendezvousClient::Send(const AgentMessage& message) {
  {
    base::MutexLock lock(mutex_);
    if (!is_open_) return;
    sent_.push_back(message);
  }
  changed_.notify_all();
}

void FakeRendezvousClient::Disconnect() {
  base::MutexLock lock(mutex_);
  is_open_ = false;
  is_pending_ = false;
}

void FakeRendezvousClient::SetKey(const RoundScope& /*scope*/, const std::string& key,
                                  const std::string& value, SetCallback done) {
  std::vector<Wait> ended;
  {
    base::MutexLock lock(mutex_);
    keys_[key] = value;
    auto kept = std::stable_partition(waits_.begin(), waits_.end(),
                                      [&](const Wait& wait) { return wait.key != key; });
    ended.assign(std::make_move_iterator(kept), std::make_move_iterator(waits_.end()));
    waits_.erase(kept, waits_.end());
  }
  done(absl::OkStatus());
  for (Wait& wait : ended) wait.done(value);
}

void FakeRendezvousClient::GetKey(const RoundScope& /*scope*/, const std::string& key,
                                  Duration wait, GetCallback done) {
  absl::StatusOr<std::string> answer = absl::NotFoundError("the key isn't set");
  {
    base::MutexLock lock(mutex_);
    auto found = keys_.find(key);
    if (found != keys_.end()) {
      answer = found->second;
    } else if (wait > Duration(0)) {
      waits_.push_back({key, std::move(done)});
      return;
    }
  }
  done(answer);
}

void FakeRendezvousClient::SetAcceptsConnections(bool accepts) {
  base::MutexLock lock(mutex_);
  accepts_ = accepts;
}

void FakeRendezvousClient::Accept() {
  uint64_t connection = 0;
  {
    base::MutexLock lock(mutex_);
    if (!is_pending_) return;
    is_pending_ = false;
    is_open_ = true;
    connection = connection_;
  }
  observer_->OnConnected(connection);
}

void FakeRendezvousClient::Deliver(const RendezvousMessage& message) {
  uint64_t connection = 0;
  {
    base::MutexLock lock(mutex_);
    if (!is_open_) return;
    connection = connection_;
  }
  observer_->OnMessage(connection, message);
}

void FakeRendezvousClient::Break(const absl::Status& why) {
  uint64_t connection = 0;
  {
    base::MutexLock lock(mutex_);
    if (!is_open_ && !is_pending_) return;
    is_open_ = false;
    is_pending_ = false;
    connection = connection_;
  }
  observer_->OnDisconnected(connection, why);
}

std::optional<AgentMessage> FakeRendezvousClient::NextSent(Duration most) {
  const auto end = std::chrono::steady_clock::now() + most;
  base::MutexLock lock(mutex_);
  while (sent_.empty()) {
    if (changed_.wait_until(mutex_, end) == std::cv_status::timeout && sent_.empty())
      return std::nullopt;
  }
  AgentMessage next = std::move(sent_.front());
  sent_.pop_front();
  return next;
}

bool FakeRendezvousClient::WaitForConnects(uint64_t count, Duration most) {
  const auto end = std::chrono::steady_clock::now() + most;
  base::MutexLock lock(mutex_);
  while (connection_ < count) {
    if (changed_.wait_until(mutex_, end) == std::cv_status::timeout) return connection_ >= count;
  }
  return true;
}

bool FakeRendezvousClient::is_open() const {
  base::MutexLock lock(mutex_);
  return is_open_;
}

void FakeRendezvousClient::EndWaits(const absl::Status& why) {
  std::vector<Wait> ended;
  {
    base::MutexLock lock(mutex_);
    ended.swap(waits_);
  }
  for (Wait& wait : ended) wait.done(why);
}

std::map<std::string, std::string> FakeRendezvousClient::keys() const {
  base::MutexLock lock(mutex_);
  return keys_;
}

}  // namespace muster::rendezvous
