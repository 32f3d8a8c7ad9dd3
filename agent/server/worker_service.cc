#include "agent/server/worker_service.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "agent/server/inbox.h"
#include "agent/server/worker_connection.h"
#include "base/entropy.h"

namespace muster::agent {
namespace {

using worker_channel::Message;

// Strangers that have said nothing yet: how many, and for how long.
constexpr size_t kMostUnknown = 64;
constexpr Duration kHelloPatience = std::chrono::seconds(5);
// Of one worker; one is the rule, a fork may open another.
constexpr int kMostConnectionsOfAWorker = 4;
// Requests of one connection that wait for an answer.
constexpr size_t kMostPending = 1024;
// Calls to the rendezvous that wait for an answer, also for connections that are gone: a worker
// that asks, leaves and comes again must not pile them up. As much as 16 busy connections.
constexpr size_t kMostCalls = 16 * kMostPending;
// A longer wait is taken as this; the round ends it anyway.
constexpr int64_t kLongestWaitMs = int64_t{7} * 24 * 3600 * 1000;

struct SocketNameTag;
using SocketName = RandomId<SocketNameTag, 16>;

uint8_t CodeOf(absl::StatusCode code) { return static_cast<uint8_t>(code); }

worker_channel::Answer AnswerOf(uint64_t request, const absl::Status& status) {
  worker_channel::Answer answer;
  answer.request = request;
  answer.code = CodeOf(status.code());
  answer.message = std::string(status.message());
  return answer;
}

}  // namespace

class WorkerService::Loop {
 public:
  Loop(int listener, std::string name, rendezvous::RendezvousClient* client,
       WorkerServiceObserver* observer, const Clock* clock)
      : listener_(listener),
        name_(std::move(name)),
        client_(client),
        observer_(observer),
        clock_(clock),
        thread_([this] { Run(); }) {}

  ~Loop() {
    inbox_->Post([this] { must_end_ = true; });
    thread_.join();
    close(listener_);
  }

  const std::string& name() const { return name_; }
  void Post(std::function<void()> task) { inbox_->Post(std::move(task)); }

  void OpenRound(Round round) {
    connections_.clear();
    round_ = std::move(round);
    abort_.reset();
  }

  void Abort(const World& world, Rank culprit, const std::string& reason) {
    if (!round_ || round_->scope.world != world || abort_) return;
    abort_ = worker_channel::Abort{.world_id = world.id, .culprit = culprit, .reason = reason};
    for (Peer& peer : connections_) {
      if (peer.welcome == nullptr) continue;
      peer.connection.Send(*abort_);
      for (const Pending& p : std::exchange(peer.pending, {})) {
        peer.connection.Send(AnswerOf(p.request, absl::AbortedError(reason)));
      }
    }
  }

  // To those connections of this round's workers over which steps are reported.
  void Push(const World& world, std::optional<Rank> rank, const Message& message) {
    if (!round_ || round_->scope.world != world || abort_) return;
    for (Peer& peer : connections_) {
      if (!peer.reports_steps || (rank && peer.welcome->rank != *rank)) continue;
      peer.connection.Send(message);
    }
  }

  void AgreeOnCheckpoint(const World& world) {
    if (!round_ || round_->scope.world != world) return;
    for (Peer& peer : connections_) {
      for (const Pending& p : peer.pending) {
        if (p.is_announcement) peer.connection.Send(AnswerOf(p.request, absl::OkStatus()));
      }
      std::erase_if(peer.pending, [](const Pending& p) { return p.is_announcement; });
    }
  }

  void Ping(const World& world) {
    if (!round_ || round_->scope.world != world) return;
    ++last_ping_;
    for (Peer& peer : connections_) {
      // One that doesn't read has enough of them.
      if (peer.welcome == nullptr || peer.connection.has_unsent()) continue;
      peer.connection.Send(worker_channel::Ping{.number = last_ping_});
    }
  }

  void AnswerCommit(const Answer& answer) {
    if (!round_ || round_->scope.world != answer.world) return;
    for (Peer& peer : connections_) {
      if (peer.welcome == nullptr || peer.welcome->rank != answer.rank) continue;
      auto found = std::find_if(peer.pending.begin(), peer.pending.end(), [&](const Pending& p) {
        return p.commit && *p.commit == answer.commit;
      });
      if (found == peer.pending.end()) continue;
      absl::Status status =
          answer.is_granted ? absl::OkStatus() : absl::AbortedError(answer.reason);
      peer.connection.Send(AnswerOf(found->request, status));
      peer.pending.erase(found);
      return;
    }
  }

 private:
  // A request that has no answer yet.
  struct Pending {
    uint64_t request = 0;
    // Of ShardDone and CommitPublished.
    std::optional<Commit> commit;
    // AnnounceCheckpoint.
    bool is_announcement = false;
  };

  struct Peer {
    Peer(int socket, uint64_t number, Instant now)
        : connection(socket), number(number), connected_at(now) {}
    WorkerConnection connection;
    // Never used twice: an answer that comes late finds its connection, or nothing.
    uint64_t number;
    Instant connected_at;
    // Set by Hello; points into round_.
    const worker_channel::Welcome* welcome = nullptr;
    std::deque<Pending> pending;
    // Reported, and not passed on yet: a fast loop reports many steps between two of our turns.
    std::optional<worker_channel::StepDone> step;
    // It has reported one: the worker's training loop speaks here, not a process forked from it.
    bool reports_steps = false;
  };

  void Run() {
    while (!must_end_) {
      short wanted = accepts_ ? POLLIN : 0;
      accepts_ = true;  // whatever wakes us may have freed a descriptor
      std::vector<pollfd> polled = {{inbox_->event(), POLLIN, 0}, {listener_, wanted, 0}};
      std::vector<uint64_t> numbers;
      for (const Peer& peer : connections_) {
        short events = peer.connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
        polled.push_back({peer.connection.socket(), events, 0});
        numbers.push_back(peer.number);
      }
      poll(polled.data(), polled.size(), PollTimeoutMs());
      // First what the agent said: a worker that connects was let in before it was spawned.
      for (const auto& task : inbox_->TakeAll()) task();
      for (size_t i = 0; i < numbers.size(); ++i) Serve(numbers[i], polled[i + 2].revents);
      if ((polled[1].revents & POLLIN) != 0) Accept();
      DropBroken();
    }
  }

  int PollTimeoutMs() const {
    Instant next = Instant::Never();
    for (const Peer& peer : connections_) {
      if (peer.welcome == nullptr) next = std::min(next, peer.connected_at + kHelloPatience);
    }
    if (next.IsNever()) return -1;
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(next - clock_->Now()).count();
    return static_cast<int>(std::max<int64_t>(ms, 0));
  }

  void Accept() {
    int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      // No descriptor is left; asking again at once would only burn time.
      accepts_ = errno != EMFILE && errno != ENFILE;
      return;
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    bool is_ours = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                   (peer.uid == geteuid() || peer.uid == 0);
    auto unknown = std::count_if(connections_.begin(), connections_.end(),
                                 [](const Peer& p) { return p.welcome == nullptr; });
    if (!is_ours || static_cast<size_t>(unknown) >= kMostUnknown) {
      close(socket);
      return;
    }
    connections_.emplace_back(socket, ++last_number_, clock_->Now());
  }

  Peer* Find(uint64_t number) {
    auto found = std::find_if(connections_.begin(), connections_.end(),
                              [&](const Peer& p) { return p.number == number; });
    return found == connections_.end() ? nullptr : &*found;
  }

  void Close(uint64_t number) {
    CloseAll([&](const Peer& p) { return p.number == number; });
  }

  template <class Which>
  void CloseAll(Which which) {
    std::vector<const worker_channel::Welcome*> closed;
    connections_.remove_if([&](const Peer& p) {
      if (!which(p)) return false;
      if (p.welcome != nullptr) closed.push_back(p.welcome);
      return true;
    });
    for (const worker_channel::Welcome* welcome : closed) {
      bool has_other = std::any_of(connections_.begin(), connections_.end(),
                                   [&](const Peer& p) { return p.welcome == welcome; });
      if (!has_other) observer_->OnWorkerLeft(welcome->world, welcome->local_rank);
    }
  }

  void Serve(uint64_t number, short events) {
    Peer* peer = Find(number);
    if (peer == nullptr || events == 0) return;
    if ((events & POLLOUT) != 0) peer->connection.Flush();
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return;
    bool is_open = peer->connection.Receive();
    while (std::optional<Message> message = peer->connection.Next()) {
      if (!Take(*peer, *message)) {
        is_open = false;
        break;
      }
    }
    PassOnStep(*peer);
    if (!is_open) Close(number);
  }

  void DropBroken() {
    Instant now = clock_->Now();
    CloseAll([&](const Peer& p) {
      bool is_silent = p.welcome == nullptr && now >= p.connected_at + kHelloPatience;
      return is_silent || p.connection.is_broken();
    });
  }

  // False if the connection is to be closed.
  bool Take(Peer& peer, const Message& message) {
    if (const auto* hello = std::get_if<worker_channel::Hello>(&message)) return Let(peer, *hello);
    if (peer.welcome == nullptr) return false;
    if (const auto* pong = std::get_if<worker_channel::Pong>(&message)) {
      observer_->OnWorkerAnswered(
          peer.welcome->world, peer.welcome->local_rank,
          peer.reports_steps ? std::optional(pong->activity) : std::nullopt);
      return true;
    }
    if (const auto* done = std::get_if<worker_channel::StepDone>(&message)) {
      peer.step = *done;
      peer.reports_steps = true;
      return true;
    }
    PassOnStep(peer);
    if (const auto* known = std::get_if<worker_channel::CheckpointKnown>(&message)) {
      observer_->OnCheckpointKnown(round_->scope.world, peer.welcome->local_rank, known->step);
      return true;
    }
    if (const auto* announced = std::get_if<worker_channel::AnnounceCheckpoint>(&message)) {
      return Announced(peer, *announced);
    }
    if (const auto* set = std::get_if<worker_channel::SetKey>(&message)) return Set(peer, *set);
    if (const auto* get = std::get_if<worker_channel::GetKey>(&message)) return Get(peer, *get);
    if (const auto* shard = std::get_if<worker_channel::ShardDone>(&message)) {
      return Shard(peer, *shard);
    }
    if (const auto* published = std::get_if<worker_channel::CommitPublished>(&message)) {
      return Published(peer, *published);
    }
    return false;  // an agent's message from a worker
  }

  void PassOnStep(Peer& peer) {
    if (!peer.step) return;
    observer_->OnStepReported(round_->scope.world, peer.welcome->local_rank,
                              *std::exchange(peer.step, std::nullopt));
  }

  bool Let(Peer& peer, const worker_channel::Hello& hello) {
    if (peer.welcome != nullptr || !round_) return false;
    auto found = round_->welcomes.find(hello.worker_id);
    if (found == round_->welcomes.end()) return false;
    auto others = std::count_if(connections_.begin(), connections_.end(),
                                [&](const Peer& p) { return p.welcome == &found->second; });
    if (others >= kMostConnectionsOfAWorker) return false;
    peer.welcome = &found->second;
    peer.connection.Send(found->second);
    if (abort_) peer.connection.Send(*abort_);
    observer_->OnHello(round_->scope.world.round, found->second.local_rank);
    return true;
  }

  // Whether the request may go on; it has its answer otherwise.
  bool Admit(Peer& peer, uint64_t request, std::optional<Commit> commit) {
    absl::Status refusal;
    if (abort_) {
      refusal = absl::AbortedError(abort_->reason);
    } else if (peer.pending.size() >= kMostPending || (!commit && calls_ >= kMostCalls)) {
      refusal = absl::ResourceExhaustedError("too many requests wait for an answer");
    } else {
      peer.pending.push_back({.request = request, .commit = std::move(commit)});
      return true;
    }
    peer.connection.Send(AnswerOf(request, refusal));
    return false;
  }

  // A call is answered. Passes that on if the request still waits for it.
  void Finish(uint64_t number, const worker_channel::Answer& answer) {
    --calls_;
    Peer* peer = Find(number);
    if (peer == nullptr) return;
    auto found = std::find_if(peer->pending.begin(), peer->pending.end(), [&](const Pending& p) {
      return !p.commit && !p.is_announcement && p.request == answer.request;
    });
    if (found == peer->pending.end()) return;
    peer->pending.erase(found);
    peer->connection.Send(answer);
  }

  bool Set(Peer& peer, const worker_channel::SetKey& set) {
    if (!Admit(peer, set.request, std::nullopt)) return true;
    ++calls_;
    // Shared: the answer may come when the service is gone; the task then never runs.
    client_->SetKey(round_->scope, set.key, set.value,
                    [this, inbox = inbox_, number = peer.number,
                     request = set.request](const absl::Status& status) {
                      inbox->Post([this, number, answer = AnswerOf(request, status)] {
                        Finish(number, answer);
                      });
                    });
    return true;
  }

  bool Get(Peer& peer, const worker_channel::GetKey& get) {
    if (!Admit(peer, get.request, std::nullopt)) return true;
    ++calls_;
    int64_t wait_ms = std::clamp<int64_t>(get.wait_ms, 0, kLongestWaitMs);
    client_->GetKey(
        round_->scope, get.key, std::chrono::milliseconds(wait_ms),
        [this, inbox = inbox_, number = peer.number,
         request = get.request](absl::StatusOr<std::string> value) {
          worker_channel::Answer answer = AnswerOf(request, value.status());
          if (value.ok()) answer.value = *std::move(value);
          inbox->Post([this, number, answer = std::move(answer)] { Finish(number, answer); });
        });
    return true;
  }

  bool Shard(Peer& peer, const worker_channel::ShardDone& shard) {
    if (!Admit(peer, shard.request, shard.commit)) return true;
    observer_->OnShardReported({.world = round_->scope.world,
                                .rank = peer.welcome->rank,
                                .shard_count = shard.shard_count,
                                .commit = shard.commit});
    return true;
  }

  bool Announced(Peer& peer, const worker_channel::AnnounceCheckpoint& announced) {
    if (peer.welcome->rank != Rank(0)) return false;
    if (!Admit(peer, announced.request, std::nullopt)) return true;
    peer.pending.back().is_announcement = true;
    observer_->OnCheckpointAnnounced(round_->scope.world, announced.step);
    return true;
  }

  bool Published(Peer& peer, const worker_channel::CommitPublished& published) {
    if (peer.welcome->rank != Rank(0)) {
      peer.connection.Send(AnswerOf(
          published.request, absl::InvalidArgumentError("only rank 0 publishes checkpoints")));
      return true;
    }
    if (!Admit(peer, published.request, published.commit)) return true;
    observer_->OnCommitPublished({.world = round_->scope.world, .commit = published.commit});
    return true;
  }

  const int listener_;
  const std::string name_;
  rendezvous::RendezvousClient* const client_;
  WorkerServiceObserver* const observer_;
  const Clock* const clock_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();

  // On the thread only.
  bool must_end_ = false;
  bool accepts_ = true;
  std::optional<Round> round_;
  // Set once the round is over.
  std::optional<worker_channel::Abort> abort_;
  std::list<Peer> connections_;
  uint64_t last_number_ = 0;
  uint64_t last_ping_ = 0;
  // That the rendezvous hasn't answered.
  size_t calls_ = 0;

  // Last: it uses all of the above.
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<WorkerService>> WorkerService::Start(
    rendezvous::RendezvousClient* client, WorkerServiceObserver* observer, const Clock* clock) {
  std::string name = "muster-" + base::FreshId<SocketName>().ToHex();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Abstract: a NUL byte, then the name, without another NUL.
  std::memcpy(&address.sun_path[1], name.data(), name.size());
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool is_open = listener >= 0 &&
                 bind(listener, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                 listen(listener, SOMAXCONN) == 0;
  if (!is_open) {
    int error = errno;
    if (listener >= 0) close(listener);
    return absl::InternalError(std::string("the socket for the workers can't be made: ") +
                               std::strerror(error));
  }
  return std::unique_ptr<WorkerService>(new WorkerService(
      std::make_unique<Loop>(listener, std::move(name), client, observer, clock)));
}

WorkerService::WorkerService(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
WorkerService::~WorkerService() = default;

const std::string& WorkerService::socket_name() const { return loop_->name(); }

void WorkerService::OpenRound(Round round) {
  loop_->Post([loop = loop_.get(), round = std::move(round)] { loop->OpenRound(round); });
}

void WorkerService::Abort(const World& world, Rank culprit, const std::string& reason) {
  loop_->Post(
      [loop = loop_.get(), world, culprit, reason] { loop->Abort(world, culprit, reason); });
}

void WorkerService::AskForCheckpoint(const World& world) {
  loop_->Post([loop = loop_.get(), world] {
    loop->Push(world, Rank(0), worker_channel::CheckpointWanted{});
  });
}

void WorkerService::TellCheckpoint(const World& world, int64_t step) {
  loop_->Post([loop = loop_.get(), world, step] {
    loop->Push(world, std::nullopt, worker_channel::CheckpointAt{.step = step});
  });
}

void WorkerService::AgreeOnCheckpoint(const World& world) {
  loop_->Post([loop = loop_.get(), world] { loop->AgreeOnCheckpoint(world); });
}

void WorkerService::Ping(const World& world) {
  loop_->Post([loop = loop_.get(), world] { loop->Ping(world); });
}

void WorkerService::AnswerCommit(const Answer& answer) {
  loop_->Post([loop = loop_.get(), answer] { loop->AnswerCommit(answer); });
}

}  // namespace muster::agent
