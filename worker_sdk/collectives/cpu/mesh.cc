#include "worker_sdk/collectives/cpu/mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <string>
#include <utility>

#include "base/entropy.h"
#include "worker_sdk/collectives/cpu/handshake_session.h"

namespace muster::cpu {
namespace {

using SteadyClock = std::chrono::steady_clock;
using TimePoint = SteadyClock::time_point;

// Between two attempts to reach a rank that refused.
constexpr std::chrono::milliseconds kRetryPause{50};
// A wait for a key is cut into such pieces, so that an abort ends it.
constexpr std::chrono::milliseconds kStoreWait{200};
// While ranks are missing, our address is set again this often: a rendezvous that was restarted has
// lost it, and who asks for it would wait in vain.
constexpr std::chrono::milliseconds kRepublishPause{1000};
// Connections that haven't proven themselves, beyond one per rank: the oldest go first.
constexpr size_t kMaxStrangers = 64;

class MeshBuilder {
 public:
  MeshBuilder(Store& store, AbortSignal& abort, const CpuGroupOptions& options)
      : store_(store),
        abort_(abort),
        options_(options),
        deadline_(SteadyClock::now() + options.connect_patience),
        endpoints_(static_cast<size_t>(options.world_size)),
        retry_at_(static_cast<size_t>(options.world_size)),
        problems_(static_cast<size_t>(options.world_size)),
        sockets_(static_cast<size_t>(options.world_size)) {}

  Result<std::vector<Socket>> Build();

 private:
  struct Session {
    HandshakeSession handshake;
    TimePoint expires;
    // The lower rank that we called; -1: it called us.
    int called = -1;
  };

  // Both go on while the store is out of reach: a rendezvous that restarts costs no round.
  Status Publish(const std::string& endpoint);
  Status FetchEndpoints();
  // Waits for kRetryPause, or the abort.
  void Pause();
  void StartConnects();
  void AcceptAll();
  // Lets every session go on; moves the proven ones to sockets_.
  void GoOn();
  void WaitForEvents();
  bool IsComplete() const;
  Status NameMissing() const;
  Opening FreshOpening() const;

  Store& store_;
  AbortSignal& abort_;
  const CpuGroupOptions& options_;
  const TimePoint deadline_;
  Socket listener_;
  std::vector<std::string> endpoints_;
  // By lower rank: when to try again; never while a session is under way.
  std::vector<TimePoint> retry_at_;
  std::vector<std::string> problems_;
  std::vector<Socket> sockets_;
  std::list<Session> sessions_;
};

Result<std::vector<Socket>> MeshBuilder::Build() {
  Result<Listener> listener = Listen(options_.address);
  if (!listener.ok()) return listener.status();
  listener_ = std::move(listener->socket);
  Status set = Publish(listener->endpoint);
  if (!set.ok()) return set;
  TimePoint republish_at = SteadyClock::now() + kRepublishPause;
  Status fetched = FetchEndpoints();
  if (!fetched.ok()) return fetched;
  while (!IsComplete()) {
    if (abort_.IsRaised()) return abort_.status();
    if (SteadyClock::now() >= deadline_) return NameMissing();
    if (SteadyClock::now() >= republish_at) {
      // Out of reach, it has lost nothing yet; the next time will do.
      (void)store_.Set(EndpointKey(options_, options_.rank), listener->endpoint);
      republish_at = SteadyClock::now() + kRepublishPause;
    }
    StartConnects();
    WaitForEvents();
    AcceptAll();
    GoOn();
  }
  for (Socket& socket : sockets_) {
    if (socket.IsOpen()) SetDataOptions(socket.fd());
  }
  return std::move(sockets_);
}

void MeshBuilder::Pause() {
  pollfd fd{abort_.fd(), POLLIN, 0};
  (void)poll(&fd, 1, static_cast<int>(kRetryPause.count()));
}

Status MeshBuilder::Publish(const std::string& endpoint) {
  for (;;) {
    Status set = store_.Set(EndpointKey(options_, options_.rank), endpoint);
    if (set.code() != StatusCode::kUnavailable || SteadyClock::now() >= deadline_) return set;
    Pause();
    if (abort_.IsRaised()) return abort_.status();
  }
}

Status MeshBuilder::FetchEndpoints() {
  for (int r = 0; r < options_.rank; ++r) {
    for (;;) {
      if (abort_.IsRaised()) return abort_.status();
      Result<std::string> endpoint = store_.Get(EndpointKey(options_, r), kStoreWait);
      if (endpoint.ok()) {
        endpoints_[static_cast<size_t>(r)] = *endpoint;
        break;
      }
      StatusCode code = endpoint.status().code();
      if (code != StatusCode::kDeadlineExceeded && code != StatusCode::kUnavailable) {
        return endpoint.status();
      }
      if (SteadyClock::now() >= deadline_) return NameMissing();
      if (code == StatusCode::kUnavailable) Pause();
    }
  }
  return {};
}

Opening MeshBuilder::FreshOpening() const {
  Opening opening{
      options_.world, options_.rank, options_.world_size, HashOfName(options_.name), {}};
  base::FillRandom(opening.nonce.data(), opening.nonce.size());
  return opening;
}

void MeshBuilder::StartConnects() {
  for (int r = 0; r < options_.rank; ++r) {
    auto i = static_cast<size_t>(r);
    if (sockets_[i].IsOpen() || SteadyClock::now() < retry_at_[i]) continue;
    Result<Socket> socket = StartConnect(endpoints_[i]);
    if (!socket.ok()) {
      problems_[i] = socket.status().message();
      retry_at_[i] = SteadyClock::now() + kRetryPause;
      continue;
    }
    retry_at_[i] = TimePoint::max();
    sessions_.push_back(
        {HandshakeSession(std::move(*socket), Role::kConnector, FreshOpening(), options_.key, r),
         deadline_, r});
  }
}

void MeshBuilder::AcceptAll() {
  for (;;) {
    Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.IsOpen()) return;
    if (sessions_.size() >= kMaxStrangers + sockets_.size()) {
      // Not our own calls: a rank that we gave up would never be called again.
      auto oldest = std::ranges::find_if(sessions_, [](const Session& session) {
        return session.called < 0 && session.handshake.rank() < 0;
      });
      if (oldest != sessions_.end()) sessions_.erase(oldest);
    }
    sessions_.push_back(
        {HandshakeSession(std::move(socket), Role::kAcceptor, FreshOpening(), options_.key, -1),
         SteadyClock::now() + options_.handshake_patience, -1});
  }
}

void MeshBuilder::GoOn() {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    HandshakeSession::Outcome outcome = it->handshake.GoOn();
    bool is_late = SteadyClock::now() >= it->expires;
    if (outcome == HandshakeSession::Outcome::kGoing && !is_late) {
      ++it;
      continue;
    }
    if (outcome == HandshakeSession::Outcome::kProven) {
      // A rank that comes twice has given up its first connection.
      sockets_[static_cast<size_t>(it->handshake.rank())] = it->handshake.TakeSocket();
    } else if (it->called >= 0) {
      auto i = static_cast<size_t>(it->called);
      problems_[i] = it->handshake.problem();
      retry_at_[i] = SteadyClock::now() + kRetryPause;
    }
    it = sessions_.erase(it);
  }
}

void MeshBuilder::WaitForEvents() {
  std::vector<pollfd> fds = {{listener_.fd(), POLLIN, 0}, {abort_.fd(), POLLIN, 0}};
  TimePoint until = deadline_;
  for (const Session& session : sessions_) {
    fds.push_back({session.handshake.fd(), session.handshake.events(), 0});
    until = std::min(until, session.expires);
  }
  for (int r = 0; r < options_.rank; ++r) {
    auto i = static_cast<size_t>(r);
    if (!sockets_[i].IsOpen()) until = std::min(until, retry_at_[i]);
  }
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()).count();
  (void)poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 1000)));
}

bool MeshBuilder::IsComplete() const {
  for (int r = 0; r < options_.world_size; ++r) {
    if (r != options_.rank && !sockets_[static_cast<size_t>(r)].IsOpen()) return false;
  }
  return true;
}

Status MeshBuilder::NameMissing() const {
  std::string ranks;
  for (int r = 0; r < options_.world_size; ++r) {
    auto i = static_cast<size_t>(r);
    if (r == options_.rank || sockets_[i].IsOpen()) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
    if (!problems_[i].empty()) ranks += " (" + problems_[i] + ")";
  }
  return {StatusCode::kDeadlineExceeded,
          "rank " + std::to_string(options_.rank) + " found no connection to rank " + ranks +
              " within " + std::to_string(options_.connect_patience.count()) + " ms"};
}

}  // namespace

std::string EndpointKey(const CpuGroupOptions& options, int rank) {
  return "group/" + options.name + "/" + options.world.id.ToHex() + "/" + std::to_string(rank);
}

Result<std::vector<Socket>> ConnectMesh(Store& store, AbortSignal& abort,
                                        const CpuGroupOptions& options) {
  return MeshBuilder(store, abort, options).Build();
}

}  // namespace muster::cpu
