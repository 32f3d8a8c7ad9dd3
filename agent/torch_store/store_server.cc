#include "agent/torch_store/store_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/server/inbox.h"
#include "agent/torch_store/store_connection.h"

namespace muster::agent::torch_store {
namespace {

// What epoll calls the two that are no connections; ids of connections begin after them.
constexpr uint64_t kInboxId = 0;
constexpr uint64_t kListenerId = 1;
constexpr uint32_t kNothing = 0;
constexpr size_t kMostAcceptsInARow = 4096;
// How long to leave the listener alone when the process has no descriptor left.
constexpr int kPauseMs = 100;
constexpr size_t kMostSaid = 4;

// Small answers go out at once, and a client whose machine is gone is noticed in about a minute.
void Tune(int fd) {
  int on = 1, idle_s = 30, interval_s = 10, count = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

// For people: "10.0.0.3:41022".
std::string PeerOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(fd, any, &size) == 0) {
    getnameinfo(any, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  }
  std::string text = host;
  // As IPv4 is shown on a socket that takes both.
  constexpr std::string_view kMapped = "::ffff:";
  if (text.starts_with(kMapped)) text.erase(0, kMapped.size());
  return text + ":" + port;
}

}  // namespace

class StoreServer::Loop {
 public:
  explicit Loop(StoreServerOptions options)
      : options_(std::move(options)),
        table_(options_.table),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        thread_([this] { Run(); }) {}

  ~Loop() {
    inbox_.Post([this] { is_over_ = true; });
    thread_.join();
    close(epoll_);
  }

  void BeginRound(StoreListener listener) {
    std::promise<void> begun;
    inbox_.Post([&] {
      Begin(std::move(listener));
      begun.set_value();
    });
    begun.get_future().wait();
  }

  void Adopt(int socket) {
    inbox_.Post([this, socket] { Admit(socket); });
  }

 private:
  struct Client {
    std::unique_ptr<StoreConnection> connection;
    // What epoll watches it for.
    uint32_t watched = 0;
    // Its part of buffered_.
    size_t buffered = 0;
  };

  void Run() {
    Watch(inbox_.event(), kInboxId, EPOLLIN, EPOLL_CTL_ADD);
    std::array<epoll_event, 256> events;
    while (!is_over_) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                                   is_paused_ ? kPauseMs : -1);
      if (is_paused_) Pause(false);
      for (int i = 0; i < count; ++i) {
        const uint64_t id = events[i].data.u64;
        if (id == kInboxId) {
          for (const auto& task : inbox_.TakeAll()) task();
        } else if (id == kListenerId) {
          AcceptAll();
        } else {
          Attend(ConnectionId(id), events[i].events);
        }
      }
    }
    clients_.clear();
  }

  void Watch(int fd, uint64_t id, uint32_t what, int operation) {
    epoll_event event{};
    event.events = what;
    event.data.u64 = id;
    epoll_ctl(epoll_, operation, fd, &event);
  }

  void Begin(StoreListener listener) {
    // What still waits in the old one's queue goes with it.
    listener_ = std::move(listener);
    clients_.clear();
    table_.Clear();
    said_.clear();
    buffered_ = 0;
    is_paused_ = false;
    is_open_ = true;
    if (listener_.is_open()) Watch(listener_.fd(), kListenerId, EPOLLIN, EPOLL_CTL_ADD);
  }

  // ---- coming in ---------------------------------------------------------------------------

  void AcceptAll() {
    for (size_t i = 0; i < kMostAcceptsInARow && listener_.is_open(); ++i) {
      int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        Admit(fd);
        continue;
      }
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) Pause(true);
      // ECONNABORTED and the like concern one connection: epoll comes back for the others.
      return;
    }
  }

  void Pause(bool paused) {
    is_paused_ = paused;
    if (listener_.is_open()) {
      Watch(listener_.fd(), kListenerId, paused ? kNothing : EPOLLIN, EPOLL_CTL_MOD);
    }
  }

  void Admit(int fd) {
    if (!is_open_ || clients_.size() >= options_.max_connections) {
      if (is_open_) {
        Say("refused a connection",
            "there are " + std::to_string(clients_.size()) + ", as many as it takes");
      }
      close(fd);
      return;
    }
    Tune(fd);
    const ConnectionId id(++last_id_);
    Client& client = clients_[id];
    client.connection = std::make_unique<StoreConnection>(fd);
    client.watched = EPOLLIN;
    Watch(fd, id.value, EPOLLIN, EPOLL_CTL_ADD);
    // Usually the first request is there already.
    Attend(id, EPOLLIN);
  }

  // ---- serving -----------------------------------------------------------------------------

  // An event of this batch may be for a connection that has been closed since.
  void Attend(ConnectionId id, uint32_t what) {
    auto found = clients_.find(id);
    if (found == clients_.end()) return;
    StoreConnection& connection = *found->second.connection;
    bool is_there = true;
    if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) is_there = connection.Receive();
    if ((what & EPOLLOUT) != 0 && !connection.Flush()) is_there = false;
    std::string refusal = Serve(id, connection, is_there);
    if (!refusal.empty() || !is_there) doomed_.emplace_back(id, std::move(refusal));
    Settle(id, found->second);
    while (!doomed_.empty()) {
      auto [doomed, why] = std::move(doomed_.back());
      doomed_.pop_back();
      Drop(doomed, why);
    }
  }

  // Takes the requests that are whole, all of them where the client has gone after asking. Returns
  // why the connection is to be closed, if it is.
  std::string Serve(ConnectionId id, StoreConnection& connection, bool is_there) {
    while (!is_there || !connection.is_behind()) {
      std::optional<Request> request = connection.reader().Next();
      if (!request) return connection.reader().refusal();
      std::vector<Answer> answers;
      std::string refusal = table_.Take(id, *std::move(request), answers);
      Deliver(answers);
      if (!refusal.empty()) return refusal;
    }
    return "";
  }

  void Deliver(std::vector<Answer>& answers) {
    for (Answer& answer : answers) {
      auto found = clients_.find(answer.connection);
      if (found == clients_.end()) continue;
      StoreConnection& connection = *found->second.connection;
      connection.Send(std::move(answer.bytes));
      // Where it is broken, epoll will say so.
      connection.Flush();
      Settle(answer.connection, found->second);
    }
  }

  // What epoll is to watch for, and what the connection keeps.
  void Settle(ConnectionId id, Client& client) {
    const StoreConnection& connection = *client.connection;
    buffered_ += connection.buffered();
    buffered_ -= std::exchange(client.buffered, connection.buffered());
    // Who keeps no more than its share isn't to blame.
    const size_t share = options_.max_buffered_bytes / options_.max_connections;
    if (buffered_ > options_.max_buffered_bytes && client.buffered > share) {
      doomed_.emplace_back(id, "too many bytes are under way (" +
                                   std::to_string(options_.max_buffered_bytes >> 20) + " MiB)");
    }
    uint32_t wanted = connection.is_behind() ? kNothing : EPOLLIN;
    if (connection.has_unsent()) wanted |= EPOLLOUT;
    if (wanted != client.watched) {
      client.watched = wanted;
      Watch(connection.socket(), id.value, wanted, EPOLL_CTL_MOD);
    }
  }

  void Drop(ConnectionId id, const std::string& why) {
    auto found = clients_.find(id);
    if (found == clients_.end()) return;
    if (!why.empty()) {
      Say("closed the connection of " + PeerOf(found->second.connection->socket()), why);
    }
    buffered_ -= found->second.buffered;
    clients_.erase(found);
    std::vector<Answer> answers;
    table_.Closed(id, answers);
    Deliver(answers);
  }

  void Say(const std::string& what, const std::string& why) {
    if (said_.size() >= kMostSaid || !said_.insert(why).second || !options_.say) return;
    options_.say(what + ": " + why);
  }

  const StoreServerOptions options_;
  Inbox inbox_;
  StoreTable table_;
  const int epoll_;
  // The thread's own.
  StoreListener listener_;
  std::unordered_map<ConnectionId, Client> clients_;
  uint64_t last_id_ = kListenerId;
  size_t buffered_ = 0;
  // To be dropped when what is under way is done, and why.
  std::vector<std::pair<ConnectionId, std::string>> doomed_;
  std::set<std::string> said_;
  bool is_open_ = false;
  bool is_paused_ = false;
  bool is_over_ = false;
  // Last: it uses all of the above.
  std::thread thread_;
};

StoreServer::StoreServer(StoreServerOptions options)
    : loop_(std::make_unique<Loop>(std::move(options))) {}
StoreServer::~StoreServer() = default;

void StoreServer::BeginRound(StoreListener listener) { loop_->BeginRound(std::move(listener)); }
void StoreServer::Adopt(int socket) { loop_->Adopt(socket); }

}  // namespace muster::agent::torch_store
