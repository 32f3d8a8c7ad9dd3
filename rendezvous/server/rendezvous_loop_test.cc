#include "rendezvous/server/rendezvous_loop.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/entropy.h"
#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Time goes on only when the test says so.
class TestClock : public Clock {
 public:
  Instant Now() const override { return Instant(Duration(now_ns_.load())); }
  void Advance(Duration by) { now_ns_ += by.count(); }

 private:
  std::atomic<int64_t> now_ns_{Duration(std::chrono::hours(1)).count()};
};

// One end of a stream that keeps what the loop says.
class TestSink : public SessionSink, public WatchSink {
 public:
  void Send(const RendezvousMessage& message) override { Add(message); }
  void Send(const WatchedEvent& event) override { Add(RendezvousMessage(Notice{event.text})); }
  void ReadNext() override {}
  void Begun() override { Add(RendezvousMessage(Notice{"begun"})); }
  void End() override { Set(&is_ended_); }
  void Cut(const absl::Status& why) override {
    {
      base::MutexLock lock(mutex_);
      why_ = why;
    }
    Set(&is_cut_);
  }

  bool WaitForEnd() {
    return WaitFor([this]() MUSTER_REQUIRES(mutex_) { return is_ended_; });
  }
  absl::Status WaitForCut() {
    if (!WaitFor([this]() MUSTER_REQUIRES(mutex_) { return is_cut_; })) return absl::OkStatus();
    base::MutexLock lock(mutex_);
    return why_;
  }
  // The first message of this type, taken off together with what came before it.
  template <class Type>
  std::optional<Type> Next() {
    std::optional<Type> found;
    WaitFor([&]() MUSTER_REQUIRES(mutex_) {
      while (!messages_.empty() && !found) {
        if (auto* message = std::get_if<Type>(&messages_.front())) found = *message;
        messages_.pop_front();
      }
      return found.has_value();
    });
    return found;
  }

 private:
  template <class Condition>
  bool WaitFor(Condition holds) {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    base::MutexLock lock(mutex_);
    while (!holds()) {
      if (changed_.wait_until(mutex_, end) == std::cv_status::timeout) return holds();
    }
    return true;
  }
  void Add(RendezvousMessage message) {
    {
      base::MutexLock lock(mutex_);
      messages_.push_back(std::move(message));
    }
    changed_.notify_all();
  }
  void Set(bool* flag) {
    {
      base::MutexLock lock(mutex_);
      *flag = true;
    }
    changed_.notify_all();
  }

  base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<RendezvousMessage> messages_ MUSTER_GUARDED_BY(mutex_);
  bool is_ended_ = false;
  bool is_cut_ = false;
  absl::Status why_ MUSTER_GUARDED_BY(mutex_);
};

Attach AttachOf(const std::string& node, int nodes) {
  Attach attach;
  attach.incarnation = base::FreshId<Incarnation>();
  attach.node_name = node;
  attach.address = "127.0.0.1";
  attach.terms.run_id = "job";
  attach.terms.min_nodes = attach.terms.max_nodes = nodes;
  attach.terms.version = "1";
  return attach;
}

// A loop on a test's clock with one job of two nodes in its first round.
struct Pair {
  Pair() : loop(Options(clock)) {
    for (int i : {0, 1}) {
      sinks[i] = std::make_shared<TestSink>();
      attaches[i] = AttachOf(i == 0 ? "node-a" : "node-b", 2);
      sessions[i] = loop.NewSessionId();
      loop.OpenSession(sessions[i], attaches[i], sinks[i]);
    }
    for (int i : {0, 1}) {
      auto start = sinks[i]->Next<StartRound>();
      EXPECT_TRUE(start.has_value());
      if (start) world = start->world;
    }
  }
  static RendezvousLoopOptions Options(const TestClock& clock) {
    RendezvousLoopOptions options;
    options.job.startup_quiet = Duration(0);
    options.clock = &clock;
    return options;
  }
  RoundScope scope() const { return {"job", attaches[0].incarnation, world}; }
  // Moves the clock in steps that no stalled loop would show.
  void Pass(Duration time) {
    for (Duration done{0}; done < time; done += milliseconds(250)) {
      clock.Advance(milliseconds(250));
      loop.Poke();
      Settle();
    }
  }
  // Returns once the loop has handled all that was asked of it before.
  size_t Settle() {
    std::promise<size_t> jobs;
    loop.GetStatus(std::nullopt, [&](const absl::StatusOr<std::vector<JobStatus>>& status) {
      jobs.set_value(status.ok() ? status->size() : 0);
    });
    return jobs.get_future().get();
  }
  std::future<absl::StatusOr<std::string>> Get(const std::string& key, Duration wait) {
    auto answer = std::make_shared<std::promise<absl::StatusOr<std::string>>>();
    last_answer = answer;
    call = loop.GetKey(scope(), key, wait, [answer](absl::StatusOr<std::string> a) {
      answer->set_value(std::move(a));
    });
    return answer->get_future();
  }

  TestClock clock;
  RendezvousLoop loop;
  std::shared_ptr<TestSink> sinks[2];
  Attach attaches[2];
  SessionId sessions[2];
  World world;
  using Drained = std::future<absl::StatusOr<RendezvousLoop::DrainResult>>;
  // A caller that waits for the node's end; `call` is its name.
  Drained Drain(const std::string& node, Duration wait) {
    auto answer = std::make_shared<std::promise<absl::StatusOr<RendezvousLoop::DrainResult>>>();
    waiter = answer;
    call =
        loop.Drain({"job", node, wait}, [answer](absl::StatusOr<RendezvousLoop::DrainResult> told) {
          answer->set_value(std::move(told));
        });
    return answer->get_future();
  }

  std::weak_ptr<void> waiter;
  CallId call;
  // Kept, for a promise that goes away makes its future ready.
  std::shared_ptr<std::promise<absl::StatusOr<std::string>>> last_answer;
};

TEST(RendezvousLoop, WhoeverAsksTurnsAnIdleLoop) {
  Pair pair;
  pair.Settle();
  std::thread::id turned_by;
  pair.loop.GetStatus(std::nullopt, [&](const absl::StatusOr<std::vector<JobStatus>>&) {
    turned_by = std::this_thread::get_id();
  });
  EXPECT_EQ(turned_by, std::this_thread::get_id()) << "no other thread has to wake up";
}

TEST(RendezvousLoop, AnswersManyThreadsInTheOrderOfEach) {
  constexpr int kThreads = 4, kCalls = 500;
  Pair pair;
  // Only the loop touches them, one caller at a time.
  std::array<std::vector<int>, kThreads> answered;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&pair, &answered, t] {
      for (int i = 0; i < kCalls; ++i) {
        pair.loop.SetKey(pair.scope(), "key", "value",
                         [&answered, t, i](const absl::StatusOr<std::string>& status) {
                           if (status.ok()) answered[t].push_back(i);
                         });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  pair.Settle();
  std::vector<int> in_order(kCalls);
  std::iota(in_order.begin(), in_order.end(), 0);
  for (const std::vector<int>& calls : answered) EXPECT_EQ(calls, in_order);
}

TEST(RendezvousLoop, ATimerIsServedWhileOthersKeepTheLoopTurning) {
  Pair pair;
  auto answer = pair.Get("key", milliseconds(400));
  std::atomic<bool> is_over = false;
  std::thread busy([&] {
    while (!is_over) pair.loop.TakeMessage(pair.sessions[0], Heartbeat{1});
  });
  pair.clock.Advance(milliseconds(500));
  EXPECT_EQ(answer.wait_for(seconds(20)), std::future_status::ready);
  is_over = true;
  busy.join();
}

TEST(RendezvousLoop, ExpiresALeaseByItsClockAlone) {
  Pair pair;
  for (int i = 0; i < 16; ++i) {
    pair.loop.TakeMessage(pair.sessions[0], Heartbeat{1});
    pair.Pass(milliseconds(250));
  }
  auto stop = pair.sinks[0]->Next<StopRound>();
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->cause, StopCause::kPeerLost);
  EXPECT_TRUE(pair.sinks[1]->WaitForEnd());
}

TEST(RendezvousLoop, AStalledLoopExpiresNobody) {
  Pair pair;
  pair.clock.Advance(seconds(30));
  pair.loop.Poke();
  pair.Settle();
  pair.loop.TakeMessage(pair.sessions[0], Heartbeat{1});
  pair.loop.TakeMessage(pair.sessions[1], Heartbeat{2});
  EXPECT_EQ(pair.sinks[0]->Next<HeartbeatAck>()->sequence, 1u);
  EXPECT_EQ(pair.sinks[1]->Next<HeartbeatAck>()->sequence, 2u);
}

TEST(RendezvousLoop, AWaitForAKeyEndsByTheClock) {
  Pair pair;
  auto answer = pair.Get("key", milliseconds(400));
  pair.Settle();
  EXPECT_EQ(answer.wait_for(seconds(0)), std::future_status::timeout);
  pair.Pass(milliseconds(500));
  EXPECT_EQ(answer.get().status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(RendezvousLoop, ACancelledCallIsForgotten) {
  Pair pair;
  auto answer = pair.Get("key", seconds(1));
  pair.loop.CancelCall("job", pair.call);
  pair.loop.CancelCall("job", CallId(12345));
  pair.loop.CancelCall("no such job", pair.call);
  std::promise<absl::Status> set;
  pair.loop.SetKey(pair.scope(), "key", "value",
                   [&](const absl::StatusOr<std::string>& a) { set.set_value(a.status()); });
  EXPECT_TRUE(set.get_future().get().ok());
  EXPECT_EQ(answer.wait_for(seconds(0)), std::future_status::timeout);
}

TEST(RendezvousLoop, AFinishedJobIsKeptForItsRetention) {
  Pair pair;
  for (int i : {0, 1}) pair.loop.TakeMessage(pair.sessions[i], NodeSucceeded{pair.world});
  for (int i : {0, 1}) {
    EXPECT_TRUE(pair.sinks[i]->Next<JobEnded>().has_value());
    pair.loop.TakeMessage(pair.sessions[i], Leave{"done"});
    pair.loop.SessionEnded(pair.sessions[i]);
  }
  EXPECT_EQ(pair.Settle(), 1u);
  pair.clock.Advance(minutes(9));
  pair.loop.Poke();
  auto late = std::make_shared<TestSink>();
  const SessionId session = pair.loop.NewSessionId();
  pair.loop.OpenSession(session, AttachOf("node-c", 2), late);
  EXPECT_TRUE(late->Next<JobEnded>().has_value());
  pair.loop.SessionEnded(session);
  pair.clock.Advance(minutes(2));
  pair.loop.Poke();
  pair.Settle();
  EXPECT_EQ(pair.Settle(), 0u);
}

TEST(RendezvousLoop, AJobThatIsGivenUpBeforeItsFirstRoundIsForgotten) {
  Pair pair;
  for (int nodes : {2, -1}) {  // waits for another node; malformed, so refused
    Attach attach = AttachOf("node-c", nodes);
    attach.terms.run_id = "given up";
    auto sink = std::make_shared<TestSink>();
    SessionId session = pair.loop.NewSessionId();
    pair.loop.OpenSession(session, attach, sink);
    EXPECT_EQ(pair.Settle(), 2u);
    EXPECT_EQ(pair.Settle(), 2u) << "its stream is still open";
    pair.loop.TakeMessage(session, Leave{});
    pair.loop.SessionEnded(session);
    pair.Settle();
    EXPECT_EQ(pair.Settle(), 1u);
  }
}

TEST(RendezvousLoop, AnEndedStreamThatDoesNotDrainIsCut) {
  Pair pair;
  // Another agent with other terms is refused, and never reads it.
  Attach other = AttachOf("node-c", 5);
  auto sink = std::make_shared<TestSink>();
  pair.loop.OpenSession(pair.loop.NewSessionId(), other, sink);
  EXPECT_TRUE(sink->Next<Refused>().has_value());
  EXPECT_TRUE(sink->WaitForEnd());
  pair.clock.Advance(seconds(6));
  pair.loop.Poke();
  EXPECT_EQ(sink->WaitForCut().code(), absl::StatusCode::kUnavailable);
}

TEST(RendezvousLoop, WatchersHearOfTheirJobOnly) {
  Pair pair;
  auto all = std::make_shared<TestSink>(), one = std::make_shared<TestSink>(),
       none = std::make_shared<TestSink>();
  const WatchId watch = pair.loop.Watch(std::nullopt, all);
  pair.loop.Watch("job", one);
  pair.loop.Watch("another job", none);
  for (auto& sink : {all, one, none}) EXPECT_EQ(sink->Next<Notice>()->text, "begun");
  pair.loop.HostStopping("stopped by SIGINT", 130);
  EXPECT_TRUE(all->Next<Notice>().has_value());
  EXPECT_TRUE(one->Next<Notice>().has_value());
  pair.loop.Unwatch(watch);
  pair.Settle();
  pair.loop.Stop();
  // Whoever is still watching is cut; what came before that would be the next message.
  EXPECT_EQ(none->WaitForCut().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(one->WaitForCut().code(), absl::StatusCode::kUnavailable);
}

TEST(RendezvousLoop, TooManyWatchersAreRefused) {
  Pair pair;
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 257; ++i) {
    sinks.push_back(std::make_shared<TestSink>());
    pair.loop.Watch(std::nullopt, sinks.back());
  }
  EXPECT_EQ(sinks.back()->WaitForCut().code(), absl::StatusCode::kResourceExhausted);
}

// 500 ms after the order its job stops the round.
TEST(RendezvousLoop, ADrainIsAnsweredWhenItsNodeIsGone) {
  Pair pair;
  auto answer = pair.Drain("node-b", minutes(1));
  pair.Pass(milliseconds(750));
  for (int i : {0, 1}) {
    auto stop = pair.sinks[i]->Next<StopRound>();
    ASSERT_TRUE(stop.has_value());
    EXPECT_EQ(answer.wait_for(seconds(0)), std::future_status::timeout);
    pair.loop.TakeMessage(pair.sessions[i], StopDone{stop->world, 29401});
  }
  EXPECT_EQ(answer.get().value_or(RendezvousLoop::DrainResult()).agents, 1);
}

TEST(RendezvousLoop, ADrainsWaitEndsByTheClock) {
  Pair pair;
  auto answer = pair.Drain("node-b", milliseconds(600));
  pair.Pass(milliseconds(500));
  EXPECT_EQ(answer.wait_for(seconds(0)), std::future_status::timeout);
  pair.Pass(milliseconds(250));
  EXPECT_EQ(answer.get().status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(RendezvousLoop, ACallerThatGoesIsNoLongerWaitedFor) {
  Pair pair;
  auto answer = pair.Drain("node-b", minutes(1));
  pair.loop.CancelDrain(CallId(12345));
  pair.Settle();
  EXPECT_FALSE(pair.waiter.expired());
  pair.loop.CancelDrain(pair.call);
  pair.Settle();
  EXPECT_TRUE(pair.waiter.expired()) << "its answer is kept";
  pair.Pass(milliseconds(750));
  EXPECT_TRUE(pair.sinks[1]->Next<StopRound>().has_value()) << "the order stands";
}

TEST(RendezvousLoop, TooManyWaitingDrainsAreRefused) {
  Pair pair;
  std::vector<Pair::Drained> answers;
  for (int i = 0; i < 256; ++i) answers.push_back(pair.Drain("node-b", minutes(1)));
  EXPECT_EQ(pair.Drain("node-b", minutes(1)).get().status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pair.Drain("node-b", Duration(0)).get().value_or(RendezvousLoop::DrainResult()).agents,
            1)
      << "it needn't wait";
  pair.loop.CancelDrain(CallId(pair.call.value - 5));
  answers.push_back(pair.Drain("node-b", minutes(1)));
  EXPECT_EQ(answers.back().wait_for(seconds(0)), std::future_status::timeout);
}

TEST(RendezvousLoop, AfterStopEverythingIsAnsweredAtOnce) {
  Pair pair;
  auto waiting = pair.Get("key", minutes(1));
  auto drain = pair.Drain("node-b", minutes(1));
  pair.loop.Stop();
  EXPECT_EQ(drain.get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.Drain("node-b", minutes(1)).get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(waiting.get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.sinks[0]->WaitForCut().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.Get("key", minutes(1)).get().status().code(), absl::StatusCode::kUnavailable);
  auto late = std::make_shared<TestSink>();
  pair.loop.OpenSession(pair.loop.NewSessionId(), AttachOf("node-c", 2), late);
  EXPECT_EQ(late->WaitForCut().code(), absl::StatusCode::kUnavailable);
  auto watcher = std::make_shared<TestSink>();
  pair.loop.Watch(std::nullopt, watcher);
  EXPECT_EQ(watcher->WaitForCut().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.Settle(), 0u);
  EXPECT_TRUE(pair.loop.WaitUntilIdle(seconds(1), seconds(1)));
}

TEST(RendezvousLoop, LingersForAnAgentThatIsAwayForAMoment) {
  Pair pair;
  pair.loop.SessionEnded(pair.sessions[0]);
  pair.loop.SessionEnded(pair.sessions[1]);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(pair.loop.WaitUntilIdle(seconds(20), milliseconds(100)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(100));
}

}  // namespace
}  // namespace muster::rendezvous
