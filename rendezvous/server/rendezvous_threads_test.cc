// A loop and its keeper of records as gRPC's threads use them: every node is a thread with a fake
// stream, and others look on, all at once. What must hold whoever turns the loop; and, under
// ThreadSanitizer, that nobody touches what the one who turns it has for itself.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/entropy.h"
#include "base/mutex.h"
#include "gtest/gtest.h"
#include "rendezvous/server/job_keeper.h"
#include "rendezvous/server/rendezvous_loop.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr int kJobs = 2;
constexpr int kNodes = 3;
constexpr uint64_t kRounds = 100;
// Only a fault makes anybody wait as long.
constexpr Duration kPatience = minutes(2);

// What one thread waits for and others bring about.
class Gate {
 public:
  template <class Change>
  void Set(Change change) {
    {
      base::MutexLock lock(mutex_);
      change();
    }
    changed_.notify_all();
  }
  template <class Condition>
  bool WaitFor(Condition holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    base::MutexLock lock(mutex_);
    while (!holds()) {
      if (changed_.wait_until(mutex_, end) == std::cv_status::timeout) return holds();
    }
    return true;
  }

 private:
  base::Mutex mutex_;
  std::condition_variable_any changed_;
};

// The loop's end of a node's stream.
class Stream : public SessionSink {
 public:
  void Send(const RendezvousMessage& message) override {
    gate_.Set([&] { inbox_.push_back(message); });
  }
  void ReadNext() override {
    gate_.Set([&] { ++reads_; });
  }
  void End() override {
    gate_.Set([&] { is_over_ = true; });
  }
  void Cut(const absl::Status& /*why*/) override {
    gate_.Set([&] { is_over_ = true; });
  }

  // What the loop said next; nothing if it has ended the stream.
  std::optional<RendezvousMessage> Next() {
    std::optional<RendezvousMessage> message;
    EXPECT_TRUE(gate_.WaitFor([&] {
      if (inbox_.empty()) return is_over_;
      message = std::move(inbox_.front());
      inbox_.pop_front();
      return true;
    })) << "the loop says nothing";
    return message;
  }
  // Until the loop takes another message, as gRPC's flow control would; false: it takes none.
  bool WaitToSend() {
    bool may_send = false;
    EXPECT_TRUE(gate_.WaitFor([&] {
      may_send = reads_ > 0;
      if (may_send) --reads_;
      return may_send || is_over_;
    })) << "the loop reads nothing";
    return may_send;
  }
  bool WaitForEnd() {
    return gate_.WaitFor([&] { return is_over_; });
  }
  // How many more messages it takes.
  int reads() {
    int reads = 0;
    gate_.Set([&] { reads = reads_; });
    return reads;
  }

 private:
  Gate gate_;
  std::deque<RendezvousMessage> inbox_;
  int reads_ = 0;
  bool is_over_ = false;
};

class Audience : public WatchSink {
 public:
  void Begun() override { ++begun_; }
  void Send(const WatchedEvent& event) override {
    if (event.text.empty()) ADD_FAILURE() << "an event without words";
  }
  void Cut(const absl::Status& /*why*/) override { ++cut_; }
  int begun() const { return begun_; }
  int cut() const { return cut_; }

 private:
  std::atomic<int> begun_{0};
  std::atomic<int> cut_{0};
};

// Calls of one thread, and how they were answered.
class Calls {
 public:
  // `is_right` judges the answer of one call, which must come exactly once.
  CallAnswer Expect(std::function<bool(const absl::StatusOr<std::string>&)> is_right) {
    auto is_answered = std::make_shared<std::atomic<bool>>(false);
    gate_.Set([&] { ++open_; });
    return [this, is_answered, is_right](const absl::StatusOr<std::string>& answer) {
      EXPECT_FALSE(is_answered->exchange(true)) << "answered twice";
      EXPECT_TRUE(is_right(answer)) << answer.status();
      gate_.Set([&] { --open_; });
    };
  }
  CallAnswer ExpectValue(const std::string& value) {
    return Expect([value](const auto& answer) { return answer.ok() && *answer == value; });
  }
  bool AreAnswered() {
    return gate_.WaitFor([&] { return open_ == 0; });
  }

 private:
  Gate gate_;
  int open_ = 0;
};

std::string RunId(int job) { return "job-" + std::to_string(job); }

RendezvousLoopOptions Options(std::unique_ptr<JobKeeper> jobs) {
  RendezvousLoopOptions options;
  options.job.startup_quiet = Duration(0);
  // A slow machine loses nobody.
  options.job.lease = options.job.reattach_grace = kPatience;
  options.jobs = std::move(jobs);
  return options;
}

// One node of a job: plays an agent until the job ends. A round ends by what its number says.
class Node {
 public:
  Node(RendezvousLoop* loop, int job, int number) : loop_(*loop) {
    attach_.node_name = "node-" + std::to_string(number);
    attach_.address = "127.0.0.1";
    attach_.terms.run_id = RunId(job);
    attach_.terms.min_nodes = attach_.terms.max_nodes = kNodes;
    attach_.terms.max_restarts = static_cast<int>(kRounds);
    attach_.terms.version = "1";
  }

  void Live() {
    Appear();
    while (!has_ended_) {
      std::optional<RendezvousMessage> message = stream_->Next();
      if (!message) break;
      std::visit([this](const auto& m) { On(m); }, *message);
    }
    loop_.SessionEnded(session_);
    EXPECT_TRUE(has_ended_);
    EXPECT_TRUE(calls_.AreAnswered());
    EXPECT_LE(stream_->reads(), 1) << "more reads than messages";
  }

  uint64_t rounds() const { return place_.world.round.value; }

 private:
  void Appear() {
    attach_.incarnation = base::FreshId<Incarnation>();
    attach_.running.reset();
    Connect();
  }
  void Connect() {
    attach_.highest_round = place_.world.round;
    stream_ = std::make_shared<Stream>();
    session_ = loop_.NewSessionId();
    loop_.OpenSession(session_, attach_, stream_);
  }
  void Tell(AgentMessage message) {
    if (stream_->WaitToSend()) loop_.TakeMessage(session_, std::move(message));
  }
  RoundScope scope() const { return {attach_.terms.run_id, attach_.incarnation, place_.world}; }
  bool is_chosen() const {
    return static_cast<uint64_t>(place_.group_rank.value) == rounds() % kNodes;
  }

  template <class Message>
  void On(const Message&) {}
  void On(const JobEnded& ended) {
    EXPECT_TRUE(ended.verdict.succeeded) << ended.verdict.reason;
    has_ended_ = true;
  }
  void On(const Refused& refused) { ADD_FAILURE() << refused.message; }
  void On(const HeartbeatAck& ack) {
    EXPECT_GT(ack.sequence, acknowledged_);
    acknowledged_ = ack.sequence;
  }
  void On(const StartRound& start) {
    EXPECT_GT(start.world.round, place_.world.round) << "rounds only grow";
    place_ = start;
    UseTable();
    if (rounds() >= kRounds) return Tell(NodeSucceeded{place_.world});
    switch (rounds() % 4) {
      case 0:
        if (is_chosen()) Fail();
        break;
      case 1:
        if (is_chosen()) ComeBack();
        break;
      case 2:
        if (is_chosen()) BeReplaced();
        break;
      default:
        Tell(ShardReport{place_.world, place_.first_rank, kNodes, Checkpoint()});
    }
  }
  void On(const CommitGranted& granted) { Tell(CommitDone{granted.world, granted.commit}); }
  void On(const CommitNoted& noted) {
    // Who comes back is told the last one again.
    if (noted.commit == Checkpoint() && is_chosen()) Fail();
  }
  void On(const StopRound& stop) { Tell(StopDone{stop.world}); }

  Commit Checkpoint() const { return {static_cast<int64_t>(rounds()), "/a/folder"}; }

  void UseTable() {
    const auto told_by = [this](int rank) {
      return std::to_string(rank) + " in " + std::to_string(rounds());
    };
    const int rank = place_.group_rank.value;
    const int next = (rank + 1) % kNodes;
    loop_.SetKey(scope(), std::to_string(rank), told_by(rank), calls_.ExpectValue(""));
    loop_.GetKey(scope(), std::to_string(next), kPatience, calls_.ExpectValue(told_by(next)));
    // The loop's own thread has these to end, unless the end of the round does.
    for (int ms : {0, 1, 3}) {
      loop_.GetKey(scope(), "never", milliseconds(ms),
                   calls_.Expect([](const auto& answer) { return !answer.ok(); }));
    }
    CallId given_up = loop_.GetKey(scope(), "given up", kPatience,
                                   [](const auto& answer) { EXPECT_FALSE(answer.ok()); });
    Tell(Heartbeat{++heartbeat_});
    loop_.CancelCall(attach_.terms.run_id, given_up);
    loop_.Barrier(scope(), {.name = "all", .participant = rank, .count = kNodes, .wait = kPatience},
                  calls_.ExpectValue(""));
    EXPECT_TRUE(calls_.AreAnswered()) << "in round " << rounds();
  }

  void Fail() {
    WorkerFailure failure;
    failure.rank = place_.first_rank;
    failure.node_name = attach_.node_name;
    failure.exit.code = 1;
    Tell(WorkerFailed{place_.world, failure});
  }
  // Its stream breaks, its workers go on; then one fails.
  void ComeBack() {
    loop_.SessionEnded(session_);
    RunningWorld& running = attach_.running.emplace();
    running.world = place_.world;
    running.group_rank = place_.group_rank;
    running.group_world_size = place_.group_world_size;
    running.first_rank = place_.first_rank;
    running.world_size = place_.world_size;
    running.restarts_charged = place_.restarts_charged;
    Connect();
    Fail();
  }
  void BeReplaced() {
    Tell(Leave{.reason = "its guardian is gone", .is_lost = true});
    loop_.SessionEnded(session_);
    Appear();
  }

  RendezvousLoop& loop_;
  Attach attach_;
  std::shared_ptr<Stream> stream_;
  SessionId session_;
  StartRound place_;
  Calls calls_;
  uint64_t heartbeat_ = 0;
  uint64_t acknowledged_ = 0;
  bool has_ended_ = false;
};

// Rounds of every job, as the status tells them: they only grow.
class Onlooker {
 public:
  explicit Onlooker(RendezvousLoop* loop) : loop_(*loop) {}

  // Looks at everything once.
  void Look() {
    auto audience = std::make_shared<Audience>();
    WatchId watch = loop_.Watch(RunId(0), audience);
    CallAnswer seen = calls_.Expect([](const auto&) { return true; });
    loop_.GetStatus(std::nullopt, [this, seen](const absl::StatusOr<std::vector<JobStatus>>& jobs) {
      EXPECT_TRUE(jobs.ok());
      if (jobs.ok()) Compare(*jobs);
      seen(std::string());
    });
    CallAnswer drained =
        calls_.Expect([](const auto& answer) { return absl::IsNotFound(answer.status()); });
    loop_.Drain({.run_id = std::nullopt, .node = "nobody", .wait = kPatience},
                [drained](const absl::StatusOr<RendezvousLoop::DrainResult>& count) {
                  count.ok() ? drained(std::string()) : drained(count.status());
                });
    loop_.Poke();
    loop_.WaitUntilIdle(Duration(0), Duration(0));
    loop_.CancelCall(RunId(1), CallId(1));
    EXPECT_TRUE(calls_.AreAnswered());
    loop_.Unwatch(watch);
    EXPECT_EQ(audience->begun(), 1);
    EXPECT_EQ(audience->cut(), 0);
  }

 private:
  // Called by whoever turns the loop, while Look() waits.
  void Compare(const std::vector<JobStatus>& jobs) {
    EXPECT_LE(jobs.size(), static_cast<size_t>(kJobs));
    for (const JobStatus& job : jobs) {
      RoundId& last = last_[job.run_id];
      EXPECT_GE(job.world.round, last);
      last = job.world.round;
    }
  }

  RendezvousLoop& loop_;
  std::map<std::string, RoundId> last_;
  Calls calls_;
};

std::string FreshDir() {
  return ::testing::TempDir() + "/rendezvous_threads." + std::to_string(getpid());
}

std::unique_ptr<JobKeeper> OpenKeeper(const std::string& dir) {
  auto store = JobStore::Open(dir);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? std::make_unique<JobKeeper>(*std::move(store)) : nullptr;
}

TEST(RendezvousThreads, JobsGoThroughTheirRoundsWhoeverTurnsTheLoop) {
  const std::string dir = FreshDir();
  std::vector<uint64_t> rounds;
  {
    RendezvousLoop loop(Options(OpenKeeper(dir)));
    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<std::thread> threads;
    for (int i = 0; i < kJobs * kNodes; ++i) {
      nodes.push_back(std::make_unique<Node>(&loop, i / kNodes, i % kNodes));
      threads.emplace_back([node = nodes.back().get()] { node->Live(); });
    }
    std::atomic<bool> is_over = false;
    std::vector<std::thread> onlookers;
    for (int i = 0; i < 2; ++i) {
      onlookers.emplace_back([&loop, &is_over] {
        for (Onlooker onlooker(&loop); !is_over;) onlooker.Look();
      });
    }
    for (std::thread& thread : threads) thread.join();
    is_over = true;
    for (std::thread& thread : onlookers) thread.join();
    EXPECT_TRUE(loop.WaitUntilIdle(kPatience, Duration(0)));
    for (const auto& node : nodes) EXPECT_EQ(node->rounds(), kRounds);
  }
  for (int job = 0; job < kJobs; ++job) {
    const JobRecord record = OpenKeeper(dir)->RecordOf(RunId(job));
    EXPECT_EQ(record.world.round, RoundId(kRounds));
    EXPECT_TRUE(record.verdict && record.verdict->succeeded);
    EXPECT_TRUE(record.commit.has_value());
  }
}

// Asks everything that can be asked of a loop, until well after it has stopped.
class Asker {
 public:
  Asker(RendezvousLoop* loop, int number) : loop_(*loop), number_(number) {}

  void Ask(int time) {
    Attach attach;
    attach.incarnation = base::FreshId<Incarnation>();
    attach.node_name = std::to_string(number_) + "." + std::to_string(time);
    attach.address = "127.0.0.1";
    attach.terms.run_id = RunId(number_ % kJobs);
    // Never so many.
    attach.terms.min_nodes = attach.terms.max_nodes = 10'000;
    attach.terms.version = "1";
    const RoundScope scope{attach.terms.run_id, attach.incarnation, World{}};
    sessions_.push_back(loop_.NewSessionId());
    streams_.push_back(std::make_shared<Stream>());
    audiences_.push_back(std::make_shared<Audience>());
    loop_.OpenSession(sessions_.back(), attach, streams_.back());
    loop_.Watch(attach.terms.run_id, audiences_.back());
    loop_.SetKey(scope, "key", "value", Refusal());
    loop_.GetKey(scope, "key", kPatience, Refusal());
    loop_.Barrier(scope, {.name = "all", .participant = 0, .count = 2, .wait = kPatience},
                  Refusal());
    CallAnswer status = calls_.Expect([](const auto&) { return true; });
    loop_.GetStatus(attach.terms.run_id, [status](const auto& jobs) {
      jobs.ok() ? status(std::string()) : status(jobs.status());
    });
    CallAnswer drained = calls_.Expect([](const auto&) { return true; });
    loop_.Drain({.run_id = std::nullopt, .node = attach.node_name, .wait = kPatience},
                [drained](const absl::StatusOr<RendezvousLoop::DrainResult>& count) {
                  count.ok() ? drained(std::string()) : drained(count.status());
                });
    loop_.TakeMessage(sessions_.back(), Heartbeat{1});
  }

  // All got what they are owed when the loop has stopped.
  void Settle() {
    EXPECT_TRUE(calls_.AreAnswered());
    for (auto& stream : streams_) EXPECT_TRUE(stream->WaitForEnd());
    for (auto& audience : audiences_) EXPECT_EQ(audience->cut(), 1);
    for (SessionId session : sessions_) loop_.SessionEnded(session);
  }

 private:
  CallAnswer Refusal() {
    return calls_.Expect([](const auto& answer) { return !answer.ok(); });
  }

  RendezvousLoop& loop_;
  const int number_;
  Calls calls_;
  std::vector<SessionId> sessions_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<std::shared_ptr<Audience>> audiences_;
};

TEST(RendezvousThreads, AStopAnswersWhatIsAskedMeanwhile) {
  constexpr int kAskers = 6, kTimes = 40;
  RendezvousLoop loop(Options(nullptr));
  Gate gate;
  int asked = 0;
  bool has_stopped = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kAskers; ++i) {
    threads.emplace_back([&, i] {
      Asker asker(&loop, i);
      for (int time = 0; time < kTimes; ++time) {
        asker.Ask(time);
        gate.Set([&] { ++asked; });
      }
      EXPECT_TRUE(gate.WaitFor([&] { return has_stopped; }));
      asker.Ask(kTimes);
      asker.Settle();
    });
  }
  EXPECT_TRUE(gate.WaitFor([&] { return asked > kAskers * kTimes / 2; }));
  loop.Stop();
  gate.Set([&] { has_stopped = true; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(loop.WaitUntilIdle(kPatience, kPatience));
}

TEST(RendezvousThreads, ManyThreadsMayUseAKeeper) {
  constexpr int kThreads = 4;
  const std::string dir = FreshDir() + ".keeper";
  std::atomic<uint64_t> called = 0;
  {
    std::unique_ptr<JobKeeper> keeper = OpenKeeper(dir);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&keeper, &called, i] {
        const std::string other = RunId((i + 1) % kThreads);
        for (uint64_t round = 1; round <= kRounds; ++round) {
          JobRecord record;
          record.world = {RoundId(round), base::FreshId<WorldId>()};
          keeper->Keep(RunId(i), record, [&called] { ++called; });
          EXPECT_EQ(keeper->RecordOf(RunId(i)), record);
          EXPECT_LE(keeper->RecordOf(other).world.round, RoundId(kRounds));
        }
        if (i == 0) keeper->Forget(RunId(i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(called, kThreads * kRounds);
  std::unique_ptr<JobKeeper> again = OpenKeeper(dir);
  for (int i = 0; i < kThreads; ++i)
    EXPECT_EQ(again->RecordOf(RunId(i)).world.round, RoundId(i == 0 ? 0 : kRounds));
}

}  // namespace
}  // namespace muster::rendezvous
