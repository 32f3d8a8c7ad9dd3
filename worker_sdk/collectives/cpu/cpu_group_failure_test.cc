// What the CPU group does when something is wrong: ranks that disagree, aborts, ranks that leave;
// and what asynchronous operations promise.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "worker_sdk/collectives/cpu/group_rig.h"
#include "worker_sdk/context/peer_waits.h"

namespace muster::cpu {
namespace {

using std::chrono::milliseconds;

void ExpectPeerLost(const Status& status, int rank) {
  EXPECT_EQ(status.code(), StatusCode::kAborted) << status.message();
  EXPECT_EQ(status.lost_rank(), rank) << status.message();
}

// What rank 1 calls while the others call all_reduce(sum, f32, 100).
struct Disagreement {
  const char* name;
  std::function<Work(ProcessGroup&, std::vector<double>&)> call;
};

const Disagreement kDisagreements[] = {
    {"max",
     [](ProcessGroup& g, auto& v) {
       return g.AllReduce({v.data(), 100, DataType::kF32}, ReduceOp::kMax);
     }},
    {"i32",
     [](ProcessGroup& g, auto& v) {
       return g.AllReduce({v.data(), 100, DataType::kI32}, ReduceOp::kSum);
     }},
    {"99 elements",
     [](ProcessGroup& g, auto& v) {
       return g.AllReduce({v.data(), 99, DataType::kF32}, ReduceOp::kSum);
     }},
    {"0 elements",
     [](ProcessGroup& g, auto& v) {
       return g.AllReduce({v.data(), 0, DataType::kF32}, ReduceOp::kSum);
     }},
    {"barrier #1", [](ProcessGroup& g, auto&) { return g.Barrier(); }},
    {"root 1",
     [](ProcessGroup& g, auto& v) {
       return g.Broadcast({v.data(), 100, DataType::kF32}, 1);
     }},
    {"send/receive #1",
     [](ProcessGroup& g, auto& v) {
       return g.Receive({v.data(), 100, DataType::kF32}, 0);
     }},
};

TEST(CpuGroupDisagreement, IsAnErrorOnEveryRankThatNamesBothCalls) {
  for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing}) {
    for (const Disagreement& wrong : kDisagreements) {
      GroupRig(3, algorithm).Run([&](ProcessGroup& group) {
        std::vector<double> values(100);
        Work work = group.rank() == 1
                        ? wrong.call(group, values)
                        : group.AllReduce({values.data(), 100, DataType::kF32}, ReduceOp::kSum);
        Status status = work.Wait();
        EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition)
            << wrong.name << ": " << status.message();
        EXPECT_NE(status.message().find(wrong.name), std::string::npos) << status.message();
        EXPECT_NE(status.message().find("(sum, f32, 100 elements)"), std::string::npos)
            << status.message();
        EXPECT_NE(status.message().find("rank 1 called"), std::string::npos) << status.message();
        // The group stays broken, for the same reason.
        Status later = group.Barrier().Wait();
        EXPECT_EQ(later.code(), StatusCode::kFailedPrecondition) << wrong.name;
        EXPECT_EQ(later.message(), status.message());
      });
    }
  }
}

TEST(CpuGroupDisagreement, BroadcastRootsDiffer) {
  GroupRig(3).Run([&](ProcessGroup& group) {
    std::vector<float> values(10);
    Status status = group.Broadcast(MutableView(values), group.rank() == 2 ? 2 : 0).Wait();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.message();
    EXPECT_NE(status.message().find("root 2"), std::string::npos) << status.message();
  });
}

TEST(CpuGroupArguments, WhatCannotBeIsRefusedAndTheGroupGoesOn) {
  GroupRig(2).Run([](ProcessGroup& group) {
    std::vector<int32_t> ints(4);
    std::vector<float> floats(4);
    std::vector<std::pair<Work, const char*>> refused = {
        {group.AllReduce(MutableView(ints), ReduceOp::kAvg), "average of integers (i32)"},
        {group.Broadcast(MutableView(ints), 2), "2 can't be"},
        {group.Broadcast(MutableView(ints), -1), "-1 can't be"},
        {group.AllGather(View(ints), MutableView(ints)), "into 4 elements"},
        {group.AllGather({ints.data(), 2, DataType::kI32}, MutableView(floats)), "same type"},
        {group.AllGather({ints.data() + 1, 2, DataType::kI32}, MutableView(ints)), "overlaps"},
        {group.ReduceScatter(View(ints), MutableView(ints), ReduceOp::kSum), "needs 8"},
        {group.ReduceScatter(View(ints), {ints.data(), 2, DataType::kI32}, ReduceOp::kAvg),
         "average of integers"},
        {group.ReduceScatter(View(ints), {ints.data() + 1, 2, DataType::kI32}, ReduceOp::kSum),
         "overlaps"},
        {group.Send(View(ints), group.rank()), "can't be"},
        {group.Receive(MutableView(ints), 7), "7 can't be"},
    };
    for (const auto& [work, words] : refused) {
      Status status = work.Wait();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << words;
      EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    }
    EXPECT_TRUE(group.Barrier().Wait().ok());
  });
  MemoryStore store;
  AbortSignal abort;
  CpuGroupOptions options;
  options.rank = 2;
  options.world_size = 2;
  EXPECT_EQ(CreateCpuGroup(store, abort, options).status().code(), StatusCode::kInvalidArgument);
}

TEST(CpuGroupArguments, MemoryThatCannotBeIsRefused) {
  GroupRig(2).Run([](ProcessGroup& group) {
    constexpr size_t kTooMany = size_t{1} << 63;
    std::vector<float> floats(4);
    Buffer nowhere{nullptr, 4, DataType::kF32};
    ConstBuffer from_nowhere{nullptr, 4, DataType::kF32};
    int peer = 1 - group.rank();
    const Work refused[] = {
        group.Broadcast(nowhere, 0),
        group.AllReduce(nowhere, ReduceOp::kSum),
        group.AllGather({nullptr, 2, DataType::kF32}, MutableView(floats)),
        group.AllGather({floats.data(), 2, DataType::kF32}, nowhere),
        group.ReduceScatter(from_nowhere, {floats.data(), 2, DataType::kF32}, ReduceOp::kSum),
        group.ReduceScatter(View(floats), {nullptr, 2, DataType::kF32}, ReduceOp::kSum),
        group.Send(from_nowhere, peer),
        group.Receive(nowhere, peer),
    };
    for (const Work& work : refused) {
      EXPECT_EQ(work.Wait().code(), StatusCode::kInvalidArgument);
      EXPECT_NE(work.Wait().message().find("elements of f32 at a null pointer"), std::string::npos)
          << work.Wait().message();
    }
    // Twice as many as this are none, in 64 bits.
    Status wrapped =
        group.AllGather({floats.data(), kTooMany, DataType::kU8}, {floats.data(), 0, DataType::kU8})
            .Wait();
    EXPECT_EQ(wrapped.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(wrapped.message().find("more than memory can have"), std::string::npos)
        << wrapped.message();
    EXPECT_TRUE(group.Barrier().Wait().ok());
  });
}

TEST(CpuGroupAbort, EndsEveryWaitWithWhatTheAgentSaid) {
  for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing}) {
    GroupRig rig(3, algorithm);
    std::atomic<int> waiting = 0;
    std::latch ended(2);
    std::thread agent([&] {
      while (waiting.load() < 2) std::this_thread::yield();
      rig.abort(0).Raise(2, "rank 2 was killed by SIGKILL");
      rig.abort(1).Raise(2, "rank 2 was killed by SIGKILL");
    });
    rig.Run([&](ProcessGroup& group) {
      if (group.rank() == 2) {
        // Never takes part, and stays.
        ended.wait();
        return;
      }
      std::vector<float> values(1 << 20);
      Work first = group.AllReduce(MutableView(values), ReduceOp::kSum);
      Work second = group.Barrier();
      ++waiting;
      ExpectPeerLost(first.Wait(), 2);
      ExpectPeerLost(second.Wait(), 2);
      ExpectPeerLost(group.Barrier().Wait(), 2);
      ended.count_down();
    });
    agent.join();
  }
}

TEST(CpuGroupAbort, EndsTheSearchForRanksThatNeverCome) {
  GroupRig rig(3);
  std::thread agent([&] { rig.abort(2).Raise(0, "rank 0 never started"); });
  ExpectPeerLost(rig.Join(2).status(), 0);
  agent.join();
}

TEST(CpuGroupConnect, NamesTheRanksThatNeverCame) {
  GroupRig rig(3);
  rig.options().connect_patience = milliseconds(50);
  Status status = rig.Join(0).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("rank 1, 2"), std::string::npos) << status.message();
}

// Out of reach at first, as while the rendezvous restarts.
class FlakyStore : public Store {
 public:
  explicit FlakyStore(Store& store) : store_(store) {}
  Status Set(const std::string& key, const std::string& value) override {
    return ++calls_ < 3 ? kGone : store_.Set(key, value);
  }
  Result<std::string> Get(const std::string& key, std::chrono::milliseconds wait) override {
    return ++calls_ < 6 ? Result<std::string>(kGone) : store_.Get(key, wait);
  }

 private:
  const Status kGone{StatusCode::kUnavailable, "no contact"};
  Store& store_;
  int calls_ = 0;
};

TEST(CpuGroupConnect, OutlastsAStoreThatIsOutOfReachForAWhile) {
  GroupRig rig(2);
  std::thread zero([&] {
    auto group = rig.Join(0);
    ASSERT_TRUE(group.ok());
    EXPECT_TRUE((*group)->Barrier().Wait().ok());
  });
  FlakyStore flaky(rig.store());
  auto group = CreateCpuGroup(flaky, rig.abort(1), rig.OptionsOf(1));
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_TRUE((*group)->Barrier().Wait().ok());
  zero.join();
}

// A store that was restarted, empty, after the first key was set.
class ForgetfulStore : public Store {
 public:
  explicit ForgetfulStore(Store& store) : store_(store) {}
  Status Set(const std::string& key, const std::string& value) override {
    return ++calls_ == 1 ? Status() : store_.Set(key, value);
  }
  Result<std::string> Get(const std::string& key, std::chrono::milliseconds wait) override {
    return store_.Get(key, wait);
  }

 private:
  Store& store_;
  int calls_ = 0;
};

TEST(CpuGroupConnect, OutlastsAStoreThatForgotItsAddress) {
  GroupRig rig(2);
  std::thread one([&] { EXPECT_TRUE(rig.Join(1).ok()); });
  ForgetfulStore forgetful(rig.store());
  EXPECT_TRUE(CreateCpuGroup(forgetful, rig.abort(0), rig.OptionsOf(0)).ok());
  one.join();
}

TEST(CpuGroupConnect, AnAddressThatIsNoneIsNamed) {
  GroupRig rig(2);
  rig.options().address = "no such host";
  Status status = rig.Join(0).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("no such host"), std::string::npos);
}

TEST(CpuGroupConnect, WorksOverIpv6) {
  GroupRig rig(3);
  rig.options().address = "::1";
  rig.Run([](ProcessGroup& group) { EXPECT_TRUE(group.Barrier().Wait().ok()); });
}

TEST(CpuGroupLeaving, WhoWaitsForARankThatLeftIsTold) {
  GroupRig(3).Run([](ProcessGroup& group) {
    ASSERT_TRUE(group.Barrier().Wait().ok());
    if (group.rank() == 1) return;
    Status status = group.Barrier().Wait();
    ExpectPeerLost(status, 1);
    EXPECT_NE(status.message().find("rank 1 (127.0.0.1) has left"), std::string::npos)
        << status.message();
  });
}

TEST(CpuGroupLeaving, WhatWasSentArrivesThoughTheSenderIsGone) {
  for (size_t count : {size_t{1024}, size_t{16} << 20}) {
    std::atomic<bool> has_left = false;
    GroupRig rig(2);
    std::thread sender([&] {
      auto group = rig.Join(0);
      ASSERT_TRUE(group.ok());
      std::vector<float> data(count, 7);
      // Not waited for: leaving does that.
      (void)(*group)->Send(View(data), 1);
      if (count > 1024) has_left = true;  // a large one needs the receiver's help
      group->reset();
      has_left = true;
    });
    auto group = rig.Join(1);
    ASSERT_TRUE(group.ok());
    while (!has_left.load()) std::this_thread::yield();
    std::vector<float> data(count);
    Status status = (*group)->Receive(MutableView(data), 0).Wait();
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(data, std::vector<float>(count, 7));
    sender.join();
  }
}

TEST(CpuGroupLeaving, IsBoundedAndTheOthersLearnWhoLeftTooEarly) {
  // Outlive the groups, to which they belong while an operation is under way.
  std::vector<float> values[2] = {std::vector<float>(10), std::vector<float>(10)};
  GroupRig rig(2);
  rig.options().leave_patience = milliseconds(50);
  rig.Run([&](ProcessGroup& group) {
    // Each waits for a message of the other; rank 0 gives up.
    Work work = group.Receive(MutableView(values[group.rank()]), 1 - group.rank());
    if (group.rank() == 0) return;
    Status status = work.Wait();
    ExpectPeerLost(status, 0);
    EXPECT_NE(status.message().find("left the group before"), std::string::npos)
        << status.message();
  });
}

TEST(CpuGroupAsync, OperationsRunInOrderAndMayBeDroppedOrWaitedForTwice) {
  GroupRig(3).Run([](ProcessGroup& group) {
    std::vector<int64_t> values(1000, 1);
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      // The handle of every second one is dropped.
      Work work = group.AllReduce(MutableView(values), ReduceOp::kSum);
      if (i % 2 == 0) works.push_back(work);
      if (i % 4 == 3) works.push_back(group.Barrier());
    }
    Work last = group.Barrier();
    std::thread other([last] { EXPECT_TRUE(last.Wait().ok()); });
    EXPECT_TRUE(last.Wait().ok());
    EXPECT_TRUE(last.Wait().ok());
    EXPECT_TRUE(last.IsDone());
    other.join();
    for (auto work = works.rbegin(); work != works.rend(); ++work) {
      EXPECT_TRUE(work->IsDone());
      EXPECT_TRUE(work->Wait().ok());
    }
    int64_t expected = 1;
    for (int i = 0; i < 20; ++i) expected *= 3;
    EXPECT_EQ(values, std::vector<int64_t>(1000, expected));
  });
}

TEST(CpuGroupAsync, ACollectiveReadsWhatTheOneBeforeItWrote) {
  GroupRig(3).Run([](ProcessGroup& group) {
    constexpr size_t kCount = 1u << 20;
    auto n = static_cast<size_t>(group.world_size());
    std::vector<int32_t> values(kCount, group.rank());
    std::vector<int32_t> all(n * kCount);
    Work sum = group.AllReduce(MutableView(values), ReduceOp::kSum);
    Status status = group.AllGather(View(values), MutableView(all)).Wait();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(sum.IsDone());
    EXPECT_EQ(all, std::vector<int32_t>(n * kCount, 0 + 1 + 2));
  });
}

TEST(CpuGroupAsync, BothSidesMaySendFirst) {
  GroupRig(3).Run([](ProcessGroup& group) {
    constexpr size_t kCount = 4u << 20;
    int n = group.world_size(), rank = group.rank();
    std::vector<int32_t> mine(kCount, rank);
    std::vector<std::vector<int32_t>> theirs(3, std::vector<int32_t>(kCount, -1));
    std::vector<Work> works;
    for (int r = 0; r < n; ++r) {
      if (r != rank) works.push_back(group.Send(View(mine), r));
    }
    for (int r = 0; r < n; ++r) {
      if (r != rank) {
        works.push_back(group.Receive(MutableView(theirs[static_cast<size_t>(r)]), r));
      }
    }
    for (const Work& work : works) EXPECT_TRUE(work.Wait().ok());
    for (int r = 0; r < n; ++r) {
      if (r != rank) {
        EXPECT_EQ(theirs[static_cast<size_t>(r)], std::vector<int32_t>(kCount, r));
      }
    }
  });
}

TEST(CpuGroupAsync, MessagesBetweenTwoRanksStayInOrder) {
  GroupRig(2).Run([](ProcessGroup& group) {
    std::vector<std::vector<int32_t>> values;
    std::vector<Work> works;
    for (int i = 0; i < 100; ++i) values.push_back(std::vector<int32_t>(static_cast<size_t>(i), i));
    for (auto& value : values) {
      if (group.rank() == 0) {
        works.push_back(group.Send(View(value), 1));
      } else {
        std::ranges::fill(value, -1);
        works.push_back(group.Receive(MutableView(value), 0));
      }
    }
    for (const Work& work : works) ASSERT_TRUE(work.Wait().ok()) << work.Wait().message();
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(values[static_cast<size_t>(i)], std::vector<int32_t>(static_cast<size_t>(i), i));
    }
  });
}

TEST(CpuGroupAsync, AnOperationIsAWaitFromItsStartToItsEnd) {
  using Kind = Activity::Kind;
  PeerWaits waits;
  GroupRig rig(2);
  std::latch may_follow(1);
  std::latch has_followed(1);
  std::latch is_over(1);
  std::thread other([&] {
    auto group = rig.Join(1);
    ASSERT_TRUE(group.ok());
    may_follow.wait();
    EXPECT_TRUE((*group)->Barrier().Wait().ok());
    has_followed.count_down();
    is_over.wait();
  });
  CpuGroupOptions options = rig.OptionsOf(0);
  options.waits = &waits;
  auto group = CreateCpuGroup(rig.store(), rig.abort(0), options);
  EXPECT_EQ(waits.activity().kind, Kind::kOwnCode);
  Work first = (*group)->Barrier();
  EXPECT_EQ(waits.activity().kind, Kind::kWaits);
  may_follow.count_down();
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_EQ(waits.activity().kind, Kind::kOwnCode);
  has_followed.wait();
  // Those that a failure ends are over as well.
  std::vector<float> value(1);
  Work received = (*group)->Receive(MutableView(value), 1);
  Work second = (*group)->Barrier();
  EXPECT_EQ(waits.activity().kind, Kind::kWaits);
  rig.abort(0).Raise(1, "the round is over");
  ExpectPeerLost(second.Wait(), 1);
  ExpectPeerLost(received.Wait(), 1);
  EXPECT_EQ(waits.activity().kind, Kind::kOwnCode);
  is_over.count_down();
  group->reset();
  EXPECT_EQ(waits.activity().kind, Kind::kUnknown);
  other.join();
}

TEST(CpuGroupAsync, TwoGroupsOfOneWorldDontMix) {
  GroupRig rig(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      CpuGroupOptions options = rig.OptionsOf(r);
      auto first = CreateCpuGroup(rig.store(), rig.abort(r), options);
      options.name = "second";
      auto second = CreateCpuGroup(rig.store(), rig.abort(r), options);
      ASSERT_TRUE(first.ok() && second.ok());
      std::vector<float> a(1000, 1), b(1000, 2);
      // In another order on each rank.
      Work works[] = {r == 0 ? (*first)->AllReduce(MutableView(a), ReduceOp::kSum)
                             : (*second)->AllReduce(MutableView(b), ReduceOp::kSum),
                      r == 1 ? (*first)->AllReduce(MutableView(a), ReduceOp::kSum)
                             : (*second)->AllReduce(MutableView(b), ReduceOp::kSum)};
      for (const Work& work : works) EXPECT_TRUE(work.Wait().ok());
      EXPECT_EQ(a, std::vector<float>(1000, 2));
      EXPECT_EQ(b, std::vector<float>(1000, 4));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace muster::cpu
