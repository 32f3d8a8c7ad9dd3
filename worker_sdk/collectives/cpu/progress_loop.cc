#include "worker_sdk/collectives/cpu/progress_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "worker_sdk/collectives/cpu/farewell.h"

namespace muster::cpu {
namespace {

// How long a failed group tries to tell its peers why.
constexpr std::chrono::milliseconds kSpreadPatience{200};

bool IsCollective(const Operation& operation) {
  return operation.call().kind != CallKind::kSendReceive;
}

int MillisecondsUntil(std::chrono::steady_clock::time_point when) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

}  // namespace

ProgressLoop::ProgressLoop(std::vector<std::unique_ptr<Link>> links, AbortSignal& abort,
                           const Options& options)
    : options_(options),
      abort_(abort),
      owner_(getpid()),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_CHECK(wake_fd_ >= 0);
  peers_.resize(links.size());
  for (size_t r = 0; r < links.size(); ++r) peers_[r].link = std::move(links[r]);
  if (options_.waits != nullptr) options_.waits->GroupMade();
  thread_ = std::make_unique<std::thread>([this] { Run(); });
}

ProgressLoop::~ProgressLoop() {
  if (getpid() != owner_) {
    (void)thread_.release();
    close(wake_fd_);
    return;
  }
  {
    base::MutexLock lock(mutex_);
    is_leaving_ = true;
    leave_by_ = Clock::now() + options_.leave_patience;
  }
  uint64_t one = 1;
  MUSTER_CHECK(write(wake_fd_, &one, sizeof(one)) == sizeof(one));
  thread_->join();
  if (options_.waits != nullptr) options_.waits->GroupLeft();
  close(wake_fd_);
}

void ProgressLoop::Start(std::unique_ptr<Operation> operation,
                         const std::shared_ptr<Work::State>& state) {
  if (getpid() != owner_) {
    return state->Finish({StatusCode::kFailedPrecondition,
                          "this process was forked from worker process " + std::to_string(owner_) +
                              ", to whom the group belongs; make a group of its own after exec"});
  }
  Status failure;
  {
    base::MutexLock lock(mutex_);
    failure = failure_;
    if (failure.ok()) {
      size_t n = peers_.size();
      started_.push_back({std::move(operation), state, std::vector<char>(n, 0),
                          std::vector<char>(n, 0), PeerWaits::Wait(options_.waits)});
    }
  }
  if (!failure.ok()) {
    state->Finish(failure);
    return;
  }
  uint64_t one = 1;
  // Can't block: the loop empties the counter long before 2^64 - 1.
  MUSTER_CHECK(write(wake_fd_, &one, sizeof(one)) == sizeof(one));
}

Status ProgressLoop::failure() const {
  base::MutexLock lock(mutex_);
  return failure_;
}

void ProgressLoop::Run() {
  for (;;) {
    Admit();
    bool has_moved = Move();
    FinishDone();
    JudgeLosses();
    if (has_failed_) return;
    {
      base::MutexLock lock(mutex_);
      bool is_idle = active_.empty() && started_.empty();
      if (is_leaving_ && (is_idle || Clock::now() >= leave_by_)) break;
      if (!active_.empty() && has_moved) continue;
      if (active_.empty() && !started_.empty()) continue;
    }
    if (!has_moved) Wait();
  }
  if (active_.empty()) {
    Clock::time_point until;
    {
      base::MutexLock lock(mutex_);
      until = leave_by_;
    }
    SayGoodbye(OpenLinks(), abort_, until);
    return;
  }
  std::string reason = "rank " + std::to_string(options_.place.rank) +
                       " left the group before its last operation was over: " +
                       Describe(active_.front().operation->call());
  Fail({StatusCode::kCancelled, reason}, Status::PeerLost(options_.place.rank, reason));
}

void ProgressLoop::Admit() {
  base::MutexLock lock(mutex_);
  while (!started_.empty()) {
    bool is_alone = IsCollective(*started_.front().operation) ||
                    (!active_.empty() && IsCollective(*active_.front().operation));
    if (is_alone && !active_.empty()) return;
    active_.push_back(std::move(started_.front()));
    started_.pop_front();
    for (Peer& peer : peers_) peer.is_parked = false;
  }
}

bool ProgressLoop::Move() {
  bool has_moved = false;
  for (int r = 0; r < options_.place.world_size; ++r) {
    if (r == options_.place.rank) continue;
    if (MoveOut(r)) has_moved = true;
    if (MoveIn(r)) has_moved = true;
  }
  return has_moved;
}

bool ProgressLoop::MoveOut(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  bool has_moved = false;
  while (!peer.is_broken && !peer.is_deaf && !has_failed_) {
    if (!peer.link->IsSending() && !StartNextFrame(rank)) break;
    Link::Outcome outcome = peer.link->Send();
    if (outcome == Link::Outcome::kBroken) peer.is_deaf = true;
    if (outcome != Link::Outcome::kDone) break;
    has_moved = true;
    peer.sender = nullptr;
  }
  return has_moved;
}

bool ProgressLoop::StartNextFrame(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  auto r = static_cast<size_t>(rank);
  for (Running& running : active_) {
    Operation& operation = *running.operation;
    if (!operation.SpeaksTo(rank)) continue;
    if (running.call_sent[r] != 0 && operation.IsAllTaken(rank)) continue;
    std::optional<Outgoing> next = operation.NextFor(rank);
    std::optional<FrameHeader> header;
    std::span<const std::byte> payload;
    if (next) {
      header = FrameHeader{FrameKind::kData, next->lane, static_cast<uint32_t>(next->size)};
      payload = {next->data, next->size};
    }
    if (running.call_sent[r] == 0) {
      peer.link->StartCall(operation.call(), header, payload);
      running.call_sent[r] = 1;
    } else if (next) {
      peer.link->StartFrame(*header, payload);
    } else {
      // Later operations wait their turn: bytes to one peer are in the order of operations.
      return false;
    }
    peer.sender = &running;
    return true;
  }
  return false;
}

bool ProgressLoop::MoveIn(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  bool has_moved = false;
  peer.is_parked = false;
  while (!peer.is_broken && !has_failed_) {
    FrameHeader header;
    if (!HasReceived(rank, peer.link->PeekHeader(header)) || !TakeFrame(rank, header)) break;
    has_moved = true;
  }
  return has_moved;
}

bool ProgressLoop::TakeFrame(int rank, const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kCall:
      return TakeCall(rank);
    case FrameKind::kData:
      return TakeData(rank, header);
    case FrameKind::kFailure:
      return TakeFailure(rank, header);
    case FrameKind::kGoodbye:
      peers_[static_cast<size_t>(rank)].has_left = true;
      return HasReceived(rank, peers_[static_cast<size_t>(rank)].link->ReceivePayload(nullptr));
  }
  return false;
}

bool ProgressLoop::TakeCall(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  auto r = static_cast<size_t>(rank);
  auto listener = std::ranges::find_if(active_, [&](const Running& running) {
    return running.operation->HearsFrom(rank) && running.call_heard[r] == 0;
  });
  if (listener == active_.end()) {
    // The peer is ahead of us.
    peer.is_parked = true;
    return false;
  }
  if (!HasReceived(rank, peer.link->ReceivePayload(peer.call_bytes.data()))) return false;
  Call theirs = DecodeCall(peer.call_bytes);
  const Call& ours = listener->operation->call();
  if (theirs != ours) {
    int own = options_.place.rank;
    std::string mine = "rank " + std::to_string(own) + " called " + Describe(ours);
    std::string other = "rank " + std::to_string(rank) + " called " + Describe(theirs);
    Fail({StatusCode::kFailedPrecondition,
          "the ranks disagree: " + (own < rank ? mine + ", " + other : other + ", " + mine)});
    return false;
  }
  listener->call_heard[r] = 1;
  return true;
}

bool ProgressLoop::TakeData(int rank, const FrameHeader& header) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  auto r = static_cast<size_t>(rank);
  auto receiver = std::ranges::find_if(active_, [&](const Running& running) {
    return running.operation->HearsFrom(rank) && running.call_heard[r] != 0 &&
           !running.operation->HasAllFrom(rank);
  });
  Destination to;
  if (receiver != active_.end()) {
    to = receiver->operation->PlaceFor(rank, header.lane, header.length);
  }
  if (to.kind == Destination::Kind::kLater) {
    peer.is_parked = true;
    return false;
  }
  if (to.kind == Destination::Kind::kWrong) {
    Fail(Status::PeerLost(
        rank, "rank " + std::to_string(rank) + " sent data that belong to no operation"));
    return false;
  }
  if (!HasReceived(rank, peer.link->ReceivePayload(to.data))) return false;
  receiver->operation->Arrived(rank, header.lane, header.length);
  return true;
}

bool ProgressLoop::TakeFailure(int rank, const FrameHeader& header) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  peer.failure_bytes.resize(header.length);
  auto* bytes = reinterpret_cast<std::byte*>(peer.failure_bytes.data());
  if (!HasReceived(rank, peer.link->ReceivePayload(bytes))) return false;
  Fail(DecodeFailure(peer.failure_bytes));
  return true;
}

bool ProgressLoop::HasReceived(int rank, Link::Outcome outcome) {
  if (outcome == Link::Outcome::kBroken) peers_[static_cast<size_t>(rank)].is_broken = true;
  return outcome == Link::Outcome::kDone;
}

bool ProgressLoop::Needs(const Running& running, int rank) const {
  auto r = static_cast<size_t>(rank);
  const Operation& operation = *running.operation;
  if (operation.HearsFrom(rank) && (running.call_heard[r] == 0 || !operation.HasAllFrom(rank))) {
    return true;
  }
  return operation.SpeaksTo(rank) &&
         (running.call_sent[r] == 0 || !operation.IsAllTaken(rank) || peers_[r].sender == &running);
}

void ProgressLoop::FinishDone() {
  for (auto it = active_.begin(); it != active_.end();) {
    bool is_done = true;
    for (int r = 0; is_done && r < options_.place.world_size; ++r) {
      is_done = r == options_.place.rank || !Needs(*it, r);
    }
    if (!is_done) {
      ++it;
      continue;
    }
    std::shared_ptr<Work::State> state = std::move(it->state);
    it = active_.erase(it);
    state->Finish({});
  }
}

void ProgressLoop::JudgeLosses() {
  if (abort_.IsRaised()) return Fail(abort_.status());
  if (suspect_ >= 0 && Clock::now() >= blame_at_) {
    return Fail(Status::PeerLost(suspect_, suspicion_));
  }
  for (int r = 0; suspect_ < 0 && r < options_.place.world_size; ++r) {
    const Peer& peer = peers_[static_cast<size_t>(r)];
    if (r == options_.place.rank || (!peer.is_broken && !peer.is_deaf)) continue;
    bool is_needed =
        std::ranges::any_of(active_, [&](const Running& running) { return Needs(running, r); });
    if (!is_needed) continue;
    suspect_ = r;
    suspicion_ = "rank " + std::to_string(r) + " (" + peer.link->peer_host() + ")" +
                 (peer.has_left ? " has left the group"
                                : " is lost: its connection broke (" + peer.link->problem() + ")");
    blame_at_ = Clock::now();
    // Who said goodbye is to blame for sure.
    if (!peer.has_left) blame_at_ += options_.culprit_grace;
    if (blame_at_ <= Clock::now()) return Fail(Status::PeerLost(suspect_, suspicion_));
  }
}

void ProgressLoop::Wait() {
  std::vector<pollfd> fds;
  fds.reserve(peers_.size() + 2);
  fds.push_back({wake_fd_, POLLIN, 0});
  fds.push_back({abort_.fd(), POLLIN, 0});
  for (const Peer& peer : peers_) {
    if (!peer.link || peer.is_broken) continue;
    bool is_sending = peer.link->IsSending() && !peer.is_deaf;
    int events = (peer.is_parked ? 0 : POLLIN) | (is_sending ? POLLOUT : 0);
    // A parked link isn't polled at all: its end would be reported for ever and hide nothing.
    if (events != 0) fds.push_back({peer.link->fd(), static_cast<short>(events), 0});
  }
  int timeout = suspect_ >= 0 ? MillisecondsUntil(blame_at_) : -1;
  {
    base::MutexLock lock(mutex_);
    if (is_leaving_) {
      int left = MillisecondsUntil(leave_by_);
      timeout = timeout < 0 ? left : std::min(timeout, left);
    }
  }
  (void)poll(fds.data(), fds.size(), timeout);
  uint64_t count = 0;
  (void)!read(wake_fd_, &count, sizeof(count));
}

std::vector<Link*> ProgressLoop::OpenLinks() const {
  std::vector<Link*> links;
  for (const Peer& peer : peers_) {
    if (peer.link && !peer.is_broken && !peer.is_deaf) links.push_back(peer.link.get());
  }
  return links;
}

void ProgressLoop::Fail(const Status& status, const Status& told) {
  if (has_failed_) return;
  has_failed_ = true;
  std::vector<std::shared_ptr<Work::State>> ended;
  {
    base::MutexLock lock(mutex_);
    failure_ = status;
    for (Running& running : active_) ended.push_back(std::move(running.state));
    for (Running& running : started_) ended.push_back(std::move(running.state));
    started_.clear();
  }
  // The caller may free its buffers as soon as it knows.
  for (Peer& peer : peers_) {
    if (peer.link && peer.link->IsSending()) peer.link->ReplacePayloadByZeros();
  }
  active_.clear();
  for (auto& state : ended) state->Finish(status);
  SpreadFailure(OpenLinks(), told, Clock::now() + kSpreadPatience);
  for (Peer& peer : peers_) {
    if (peer.link) peer.link->Close();
  }
}

}  // namespace muster::cpu
