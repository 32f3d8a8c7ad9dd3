// The channel to the workers, with raw clients on its socket and a double of the rendezvous behind.
#include "agent/server/worker_service.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/worker_channel.h"
#include "gtest/gtest.h"
#include "rendezvous/client/fake_rendezvous_client.h"

namespace muster::agent {
namespace {

using worker_channel::Message;

constexpr int kPatienceMs = 20'000;

// One worker's end of the channel.
class RawClient {
 public:
  explicit RawClient(const std::string& name) : socket_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(&address.sun_path[1], name.data(), name.size());
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  ~RawClient() { close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void SendBytes(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      ssize_t put = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) return;
      sent += static_cast<size_t>(put);
    }
  }
  void Send(const Message& message) { SendBytes(worker_channel::Encode(message)); }

  // Nothing if the connection was closed, or nothing came in time.
  std::optional<Message> Next() {
    while (true) {
      worker_channel::Decoded decoded = worker_channel::Decode(received_);
      if (decoded.kind == worker_channel::Decoded::Kind::kMessage) {
        received_.erase(0, decoded.consumed);
        return decoded.message;
      }
      char bytes[4096];
      pollfd polled{socket_, POLLIN, 0};
      if (poll(&polled, 1, kPatienceMs) != 1) return std::nullopt;
      ssize_t got = recv(socket_, bytes, sizeof bytes, 0);
      if (got <= 0) {
        is_closed_ = true;
        return std::nullopt;
      }
      received_.append(bytes, static_cast<size_t>(got));
    }
  }

  template <class Wanted>
  Wanted Get() {
    std::optional<Message> message = Next();
    if (message && std::holds_alternative<Wanted>(*message)) return std::get<Wanted>(*message);
    ADD_FAILURE() << (message ? "another message" : "no message");
    return {};
  }

  // The service has closed the connection.
  bool IsClosed() {
    while (!is_closed_) {
      if (!Next() && !is_closed_) return false;
    }
    return true;
  }

 private:
  int socket_;
  std::string received_;
  bool is_closed_ = false;
};

class Observer : public WorkerServiceObserver {
 public:
  void OnShardReported(ShardReport report) override {
    std::unique_lock lock(mutex_);
    shards_.push_back(std::move(report));
    changed_.notify_all();
  }
  void OnCommitPublished(CommitDone done) override {
    std::unique_lock lock(mutex_);
    commits_.push_back(std::move(done));
    changed_.notify_all();
  }
  void OnStepReported(const World& world, LocalRank local_rank,
                      worker_channel::StepDone done) override {
    std::unique_lock lock(mutex_);
    EXPECT_EQ(world.round, RoundId(1));
    steps_[local_rank] = done.step;
    changed_.notify_all();
  }
  void OnCheckpointAnnounced(const World& world, int64_t step) override {
    std::unique_lock lock(mutex_);
    EXPECT_EQ(world.round, RoundId(1));
    announced_ = step;
    changed_.notify_all();
  }
  void OnCheckpointKnown(const World& /*world*/, LocalRank local_rank, int64_t step) override {
    std::unique_lock lock(mutex_);
    known_[local_rank] = step;
    changed_.notify_all();
  }
  bool HasAnnouncement(int64_t step) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                             [&] { return announced_ == step; });
  }
  bool IsKnown(LocalRank local_rank, int64_t step) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [&] {
      return known_.count(local_rank) && known_[local_rank] == step;
    });
  }
  void OnWorkerAnswered(const World& world, LocalRank local_rank,
                        const std::optional<Activity>& activity) override {
    std::unique_lock lock(mutex_);
    EXPECT_EQ(world.round, RoundId(1));
    ++answers_[local_rank];
    activities_[local_rank] = activity;
    changed_.notify_all();
  }
  void OnWorkerLeft(const World& world, LocalRank local_rank) override {
    std::unique_lock lock(mutex_);
    if (world.round != RoundId(1)) return;
    left_.insert(local_rank);
    changed_.notify_all();
  }
  bool HasAnswers(LocalRank local_rank, int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                             [&] { return answers_[local_rank] >= count; });
  }
  std::optional<Activity> ActivityOf(LocalRank local_rank) {
    std::unique_lock lock(mutex_);
    return activities_[local_rank];
  }
  bool HasLeft(LocalRank local_rank) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                             [&] { return left_.contains(local_rank); });
  }
  bool HasLeftAlready(LocalRank local_rank) {
    std::unique_lock lock(mutex_);
    return left_.contains(local_rank);
  }
  // Waits until that worker's step is known.
  bool HasStep(LocalRank local_rank, int64_t step) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [&] {
      return steps_.count(local_rank) && steps_[local_rank] == step;
    });
  }
  std::vector<ShardReport> Shards(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                      [&] { return shards_.size() >= count; });
    return shards_;
  }
  void OnHello(RoundId round, LocalRank local_rank) override {
    std::unique_lock lock(mutex_);
    hellos_.emplace_back(round, local_rank);
    changed_.notify_all();
  }
  std::vector<std::pair<RoundId, LocalRank>> Hellos(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                      [&] { return hellos_.size() >= count; });
    return hellos_;
  }
  std::vector<CommitDone> Commits(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                      [&] { return commits_.size() >= count; });
    return commits_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<LocalRank, int64_t> steps_;
  std::map<LocalRank, int64_t> known_;
  int64_t announced_ = -1;
  std::map<LocalRank, int> answers_;
  std::map<LocalRank, std::optional<Activity>> activities_;
  std::set<LocalRank> left_;
  std::vector<ShardReport> shards_;
  std::vector<CommitDone> commits_;
  std::vector<std::pair<RoundId, LocalRank>> hellos_;
};

class NoSession : public rendezvous::SessionObserver {
  void OnConnected(uint64_t) override {}
  void OnMessage(uint64_t, RendezvousMessage) override {}
  void OnDisconnected(uint64_t, absl::Status) override {}
};

class WorkerServiceTest : public testing::Test {
 protected:
  WorkerServiceTest() {
    auto service = WorkerService::Start(&rendezvous_, &observer_);
    EXPECT_TRUE(service.ok());
    service_ = *std::move(service);
    service_->OpenRound(RoundOf(1));
  }

  static World WorldOf(uint64_t round) {
    World world;
    world.round = RoundId(round);
    world.id.bytes.fill(static_cast<uint8_t>(round));
    return world;
  }

  static WorkerService::Round RoundOf(uint64_t round) {
    WorkerService::Round opened;
    opened.scope.run_id = "job";
    opened.scope.world = WorldOf(round);
    for (int i = 0; i < 2; ++i) {
      worker_channel::Welcome welcome;
      welcome.world = WorldOf(round);
      welcome.key.bytes.fill(7);
      welcome.rank = Rank(i);
      welcome.local_rank = LocalRank(i);
      welcome.world_size = 2;
      welcome.address = "127.0.0.1";
      opened.welcomes["w/" + std::to_string(round) + "/" + std::to_string(i)] = welcome;
    }
    return opened;
  }

  std::unique_ptr<RawClient> Connect() {
    return std::make_unique<RawClient>(service_->socket_name());
  }
  // Let in as a rank of round 1.
  std::unique_ptr<RawClient> Worker(int rank) {
    auto client = Connect();
    client->Send(worker_channel::Hello{
        .worker_id = "w/1/" + std::to_string(rank), .pid = getpid(), .sdk_version = "1"});
    EXPECT_EQ(client->Get<worker_channel::Welcome>().rank, Rank(rank));
    return client;
  }

  NoSession session_;
  rendezvous::FakeRendezvousClient rendezvous_{&session_};
  Observer observer_;
  std::unique_ptr<WorkerService> service_;
};

uint8_t Code(absl::StatusCode code) { return static_cast<uint8_t>(code); }

TEST_F(WorkerServiceTest, TellsAWorkerItsPlaceAndTheRoundsKey) {
  auto client = Connect();
  client->Send(worker_channel::Hello{.worker_id = "w/1/1", .pid = 1, .sdk_version = "1"});
  EXPECT_EQ(client->Get<worker_channel::Welcome>(), RoundOf(1).welcomes["w/1/1"]);
}

TEST_F(WorkerServiceTest, SaysWhichWorkersUseTheSdk) {
  RawClient stranger(service_->socket_name());
  stranger.Send(worker_channel::Hello{.worker_id = "w/1/7", .sdk_version = ""});
  EXPECT_FALSE(stranger.Next());
  RawClient worker(service_->socket_name());
  worker.Send(worker_channel::Hello{.worker_id = "w/1/1", .sdk_version = ""});
  ASSERT_TRUE(worker.Next());
  auto hellos = observer_.Hellos(1);
  ASSERT_EQ(hellos.size(), 1u);
  EXPECT_EQ(hellos[0], std::pair(RoundId(1), LocalRank(1)));
}

TEST_F(WorkerServiceTest, StrangersAndOlderRoundsAreClosed) {
  for (const char* id : {"", "w/1/9", "w/0/0"}) {
    auto client = Connect();
    client->Send(worker_channel::Hello{.worker_id = id, .pid = 1, .sdk_version = "1"});
    EXPECT_TRUE(client->IsClosed()) << id;
  }
  auto early = Connect();
  early->Send(worker_channel::GetKey{.request = 1, .key = "k"});
  EXPECT_TRUE(early->IsClosed());
}

TEST_F(WorkerServiceTest, AMalformedFrameClosesThatConnectionOnly) {
  auto good = Worker(0);
  auto bad = Worker(1);
  bad->SendBytes(std::string("\xff\xff\xff\x7f garbage", 12));
  EXPECT_TRUE(bad->IsClosed());
  // What only an agent says is no better.
  auto wrong = Worker(1);
  wrong->Send(worker_channel::Abort{});
  EXPECT_TRUE(wrong->IsClosed());
  good->Send(worker_channel::SetKey{.request = 1, .key = "k", .value = "v"});
  EXPECT_EQ(good->Get<worker_channel::Answer>().code, 0);
}

TEST_F(WorkerServiceTest, RelaysKeysAlsoThoseThatAreWaitedFor) {
  auto setter = Worker(0);
  auto getter = Worker(1);
  getter->Send(worker_channel::GetKey{.request = 5, .key = "k", .wait_ms = 60'000});
  std::string value("a\0b", 3);
  setter->Send(worker_channel::SetKey{.request = 9, .key = "k", .value = value});
  EXPECT_EQ(setter->Get<worker_channel::Answer>().request, 9u);
  auto answer = getter->Get<worker_channel::Answer>();
  EXPECT_EQ(answer.request, 5u);
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.value, value);
  getter->Send(worker_channel::GetKey{.request = 6, .key = "none"});
  EXPECT_EQ(getter->Get<worker_channel::Answer>().code, Code(absl::StatusCode::kNotFound));
}

TEST_F(WorkerServiceTest, AFrameMayComeByteByByte) {
  auto client = Worker(0);
  std::string frame = worker_channel::Encode(worker_channel::SetKey{1, "k", "v"});
  for (char c : frame) client->SendBytes(std::string(1, c));
  EXPECT_EQ(client->Get<worker_channel::Answer>().request, 1u);
}

TEST_F(WorkerServiceTest, AnAbortReachesAllEndsTheirWaitsAndThoseWhoComeLater) {
  auto client = Worker(0);
  client->Send(worker_channel::GetKey{.request = 5, .key = "k", .wait_ms = 60'000});
  client->Send(worker_channel::SetKey{.request = 6, .key = "other", .value = ""});
  EXPECT_EQ(client->Get<worker_channel::Answer>().request, 6u);  // so the wait has begun
  service_->Abort(WorldOf(2), Rank(0), "another world");
  service_->Abort(WorldOf(1), Rank(1), "rank 1 is lost");
  auto abort = client->Get<worker_channel::Abort>();
  EXPECT_EQ(abort.culprit, Rank(1));
  EXPECT_EQ(abort.reason, "rank 1 is lost");
  auto answer = client->Get<worker_channel::Answer>();
  EXPECT_EQ(answer.request, 5u);
  EXPECT_EQ(answer.code, Code(absl::StatusCode::kAborted));
  // The rendezvous' own answer comes too late for anybody.
  rendezvous_.EndWaits(absl::AbortedError("round over"));
  auto late = Worker(1);
  EXPECT_EQ(late->Get<worker_channel::Abort>(), abort);
  late->Send(worker_channel::GetKey{.request = 7, .key = "k", .wait_ms = 60'000});
  EXPECT_EQ(late->Get<worker_channel::Answer>().code, Code(absl::StatusCode::kAborted));
}

TEST_F(WorkerServiceTest, ANewRoundClosesTheOldOnesConnections) {
  auto client = Worker(0);
  service_->OpenRound(RoundOf(2));
  EXPECT_TRUE(client->IsClosed());
  auto next = Connect();
  next->Send(worker_channel::Hello{.worker_id = "w/2/0", .pid = 1, .sdk_version = "1"});
  EXPECT_EQ(next->Get<worker_channel::Welcome>().world, WorldOf(2));
}

TEST_F(WorkerServiceTest, AShardIsReportedAndAnsweredWhenTheAgentSays) {
  auto client = Worker(0);
  Commit commit{.step = 40, .directory = "/c/40"};
  client->Send(worker_channel::ShardDone{.request = 3, .shard_count = 2, .commit = commit});
  std::vector<ShardReport> shards = observer_.Shards(1);
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0], (ShardReport{WorldOf(1), Rank(0), 2, commit}));
  service_->AnswerCommit({WorldOf(1), Rank(0), commit, true, ""});
  auto answer = client->Get<worker_channel::Answer>();
  EXPECT_EQ(answer.request, 3u);
  EXPECT_EQ(answer.code, 0);

  client->Send(worker_channel::CommitPublished{.request = 4, .commit = commit});
  EXPECT_EQ(observer_.Commits(1).size(), 1u);
  service_->AnswerCommit({WorldOf(1), Rank(0), commit, false, "stale"});
  answer = client->Get<worker_channel::Answer>();
  EXPECT_EQ(answer.request, 4u);
  EXPECT_EQ(answer.code, Code(absl::StatusCode::kAborted));
  EXPECT_EQ(answer.message, "stale");
}

TEST_F(WorkerServiceTest, PassesOnTheLastOfTheStepsThatAWorkerReports) {
  auto one = Worker(1);
  std::string frames;
  for (int64_t step = 0; step < 1000; ++step) {
    frames += worker_channel::Encode(worker_channel::StepDone{step});
  }
  one->SendBytes(frames);
  EXPECT_TRUE(observer_.HasStep(LocalRank(1), 999));
  // In order with what is asked after it.
  Commit commit{.step = 1000, .directory = "/c/1000"};
  one->SendBytes(worker_channel::Encode(worker_channel::StepDone{1000}) +
                 worker_channel::Encode(worker_channel::ShardDone{3, 1, commit}));
  EXPECT_EQ(observer_.Shards(1).size(), 1u);
  EXPECT_TRUE(observer_.HasStep(LocalRank(1), 1000));
}

TEST_F(WorkerServiceTest, RankZeroIsAskedAnnouncesAndWaitsUntilAllKnow) {
  auto zero = Worker(0);
  auto one = Worker(1);
  auto child = Worker(1);  // of the same worker; it reports no steps, so it isn't told
  zero->Send(worker_channel::StepDone{4, true});
  one->Send(worker_channel::StepDone{4, true});
  EXPECT_TRUE(observer_.HasStep(LocalRank(0), 4));
  EXPECT_TRUE(observer_.HasStep(LocalRank(1), 4));
  service_->AskForCheckpoint(WorldOf(2));  // of another world
  service_->AskForCheckpoint(WorldOf(1));
  zero->Get<worker_channel::CheckpointWanted>();
  zero->Send(worker_channel::AnnounceCheckpoint{.request = 9, .step = 6});
  EXPECT_TRUE(observer_.HasAnnouncement(6));
  service_->TellCheckpoint(WorldOf(1), 6);
  EXPECT_EQ(one->Get<worker_channel::CheckpointAt>().step, 6);
  one->Send(worker_channel::CheckpointKnown{6});
  EXPECT_TRUE(observer_.IsKnown(LocalRank(1), 6));
  EXPECT_EQ(zero->Get<worker_channel::CheckpointAt>().step, 6);
  service_->AgreeOnCheckpoint(WorldOf(1));
  auto answer = zero->Get<worker_channel::Answer>();
  EXPECT_EQ(answer.request, 9u);
  EXPECT_EQ(answer.code, 0);
  child->Send(worker_channel::GetKey{.request = 1, .key = "none"});
  EXPECT_EQ(child->Get<worker_channel::Answer>().request, 1u) << "the first it hears";
}

TEST_F(WorkerServiceTest, TheEndOfTheRoundAnswersAnAnnouncement) {
  auto zero = Worker(0);
  zero->Send(worker_channel::AnnounceCheckpoint{.request = 9, .step = 6});
  EXPECT_TRUE(observer_.HasAnnouncement(6));
  service_->Abort(WorldOf(1), Rank(1), "rank 1 is lost");
  zero->Get<worker_channel::Abort>();
  EXPECT_EQ(zero->Get<worker_channel::Answer>().code, Code(absl::StatusCode::kAborted));
  // Only rank 0 may announce.
  auto one = Worker(1);
  one->Send(worker_channel::AnnounceCheckpoint{.request = 1, .step = 6});
  EXPECT_TRUE(one->IsClosed());
}

TEST_F(WorkerServiceTest, WorkersArePingedAndTheirAnswersToldOn) {
  auto zero = Worker(0);
  auto one = Worker(1);
  service_->Ping(WorldOf(2));  // of another world
  service_->Ping(WorldOf(1));
  auto ping = zero->Get<worker_channel::Ping>();
  EXPECT_EQ(one->Get<worker_channel::Ping>().number, ping.number);
  zero->Send(worker_channel::Pong{ping.number, {}});
  EXPECT_TRUE(observer_.HasAnswers(LocalRank(0), 1));
  service_->Ping(WorldOf(1));
  EXPECT_NE(zero->Get<worker_channel::Ping>().number, ping.number);
}

TEST_F(WorkerServiceTest, OnlyTheProcessThatMakesStepsTellsWhatItsWorkerDoes) {
  auto trainer = Worker(0);
  auto other = Worker(0);
  const Activity waits{Activity::Kind::kWaits, std::chrono::seconds(2)};
  other->Send(worker_channel::Pong{1, waits});
  ASSERT_TRUE(observer_.HasAnswers(LocalRank(0), 1));
  EXPECT_EQ(observer_.ActivityOf(LocalRank(0)), std::nullopt);
  trainer->Send(worker_channel::StepDone{.step = 1});
  trainer->Send(worker_channel::Pong{1, waits});
  ASSERT_TRUE(observer_.HasAnswers(LocalRank(0), 2));
  EXPECT_EQ(observer_.ActivityOf(LocalRank(0)), waits);
}

TEST_F(WorkerServiceTest, AWorkerHasLeftWhenItsLastConnectionIsClosed) {
  auto first = Worker(1);
  auto second = Worker(1);
  first.reset();
  second->Send(worker_channel::SetKey{.request = 1, .key = "k", .value = "v"});
  EXPECT_EQ(second->Get<worker_channel::Answer>().code, 0);
  EXPECT_FALSE(observer_.HasLeftAlready(LocalRank(1)));
  second.reset();
  EXPECT_TRUE(observer_.HasLeft(LocalRank(1)));
}

TEST_F(WorkerServiceTest, OnlyRankZeroPublishes) {
  auto client = Worker(1);
  client->Send(
      worker_channel::CommitPublished{.request = 4, .commit = {.step = 1, .directory = "/c"}});
  EXPECT_EQ(client->Get<worker_channel::Answer>().code, Code(absl::StatusCode::kInvalidArgument));
}

TEST_F(WorkerServiceTest, AWorkerThatAsksAndLeavesPilesUpNoMoreThanABoundedNumberOfCalls) {
  constexpr uint64_t kAtOnce = 1000;
  bool is_refused = false;
  for (int connections = 0; connections < 20 && !is_refused; ++connections) {
    auto client = Worker(connections % 2);
    std::string frames;
    for (uint64_t i = 0; i < kAtOnce; ++i) {
      frames += worker_channel::Encode(
          worker_channel::GetKey{.request = i, .key = "none", .wait_ms = 60'000});
    }
    client->SendBytes(frames + worker_channel::Encode(worker_channel::SetKey{kAtOnce, "k", "v"}));
    // Waits aren't answered, what comes after them is.
    is_refused =
        client->Get<worker_channel::Answer>().code == Code(absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(is_refused, connections == 16) << connections;
  }
  EXPECT_TRUE(is_refused);
  rendezvous_.EndWaits(absl::DeadlineExceededError("not there"));
  // Answered, they make room again, though nobody waits for them any more.
  auto client = Worker(0);
  client->Send(worker_channel::SetKey{.request = 1, .key = "k", .value = "v"});
  EXPECT_EQ(client->Get<worker_channel::Answer>().code, 0);
}

TEST_F(WorkerServiceTest, TooManyWaitingRequestsAreRefused) {
  auto client = Worker(0);
  for (uint64_t i = 0; i <= 1024; ++i) {
    client->Send(worker_channel::GetKey{.request = i, .key = "none", .wait_ms = 60'000});
  }
  auto answer = client->Get<worker_channel::Answer>();
  EXPECT_EQ(answer.request, 1024u);
  EXPECT_EQ(answer.code, Code(absl::StatusCode::kResourceExhausted));
}

TEST_F(WorkerServiceTest, AWorkerHasAFewConnectionsAtMost) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Worker(0));
  auto fifth = Connect();
  fifth->Send(worker_channel::Hello{.worker_id = "w/1/0", .pid = 1, .sdk_version = "1"});
  EXPECT_TRUE(fifth->IsClosed());
  // A connection that ends makes room.
  clients.pop_back();
  auto sixth = Worker(0);
  sixth->Send(worker_channel::SetKey{.request = 1, .key = "k", .value = "v"});
  EXPECT_EQ(sixth->Get<worker_channel::Answer>().code, 0);
}

TEST_F(WorkerServiceTest, AStuckReaderCostsItsConnectionOnly) {
  auto stuck = Worker(0);
  auto good = Worker(1);
  std::string big(1 << 20, 'x');
  good->Send(worker_channel::SetKey{.request = 1, .key = "big", .value = big});
  EXPECT_EQ(good->Get<worker_channel::Answer>().code, 0);
  // Asks for 16 MiB and reads nothing.
  for (uint64_t i = 0; i < 16; ++i) {
    stuck->Send(worker_channel::GetKey{.request = i, .key = "big"});
  }
  good->Send(worker_channel::GetKey{.request = 2, .key = "big"});
  EXPECT_EQ(good->Get<worker_channel::Answer>().value, big);
  EXPECT_TRUE(stuck->IsClosed());
}

}  // namespace
}  // namespace muster::agent
