// The context over a real socket to a fake agent, and the store in memory.
#include "worker_sdk/context/context.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/entropy.h"
#include "base/env.h"
#include "gtest/gtest.h"
#include "worker_sdk/context/agent_channel.h"
#include "worker_sdk/context/environment.h"
#include "worker_sdk/context/fake_agent.h"
#include "worker_sdk/context/memory_store.h"
#include "worker_sdk/context/peer_waits.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

Result<std::optional<AgentAddress>> Read(const std::map<std::string, std::string>& variables) {
  return ReadEnvironment([&](const char* name) {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

void ClearEnvironment() {
  for (const char* name : {env::kAgentSocket, env::kWorkerId, env::kRank, env::kLocalRank}) {
    unsetenv(name);
  }
}

// Blocks until the agent's push, or its end, has reached the worker.
void AwaitAbort(Context& context) {
  // A key that nobody sets: only the end of the round ends this.
  Result<std::string> value = context.store().Get("nobody sets this", milliseconds(30000));
  EXPECT_EQ(value.status().code(), StatusCode::kAborted) << value.status().message();
}

TEST(Environment, NothingSetMeansAWorldOfOne) {
  auto agent = Read({});
  ASSERT_TRUE(agent.ok());
  EXPECT_FALSE(agent->has_value());
}

TEST(Environment, ANamedAgentIsFound) {
  auto agent = Read({{env::kAgentSocket, "muster-x"}, {env::kWorkerId, "a/1/0"}});
  ASSERT_TRUE(agent.ok());
  EXPECT_EQ(**agent, (AgentAddress{"muster-x", "a/1/0", std::nullopt}));
  agent =
      Read({{env::kAgentSocket, "muster-x"}, {env::kWorkerId, "a/1/0"}, {env::kLocalRank, "3"}});
  ASSERT_TRUE(agent.ok());
  EXPECT_EQ(**agent, (AgentAddress{"muster-x", "a/1/0", 3}));
}

TEST(Environment, AnotherLauncherIsRefusedWithTheRemedy) {
  auto agent = Read({{env::kRank, "3"}});
  EXPECT_EQ(agent.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(agent.status().message().find("RANK is set to '3'"), std::string::npos);
  EXPECT_NE(agent.status().message().find("muster run"), std::string::npos);
}

TEST(Environment, HalfOfItOrNonsenseIsNamed) {
  const std::map<std::string, std::map<std::string, std::string>> cases = {
      {"MUSTER_WORKER_ID is missing", {{env::kAgentSocket, "s"}}},
      {"MUSTER_AGENT_SOCKET is missing", {{env::kWorkerId, "w"}}},
      {"MUSTER_AGENT_SOCKET is empty", {{env::kAgentSocket, ""}, {env::kWorkerId, "w"}}},
      {"MUSTER_WORKER_ID is empty", {{env::kAgentSocket, "s"}, {env::kWorkerId, ""}}},
      {"MUSTER_AGENT_SOCKET has 108",
       {{env::kAgentSocket, std::string(108, 's')}, {env::kWorkerId, "w"}}},
      {"LOCAL_RANK is '1x', no whole number",
       {{env::kAgentSocket, "s"}, {env::kWorkerId, "w"}, {env::kLocalRank, "1x"}}},
  };
  for (const auto& [start, variables] : cases) {
    auto agent = Read(variables);
    EXPECT_EQ(agent.status().code(), StatusCode::kInvalidArgument) << start;
    EXPECT_EQ(agent.status().message().rfind(start, 0), 0u) << agent.status().message();
  }
}

TEST(MemoryStore, GetWaitsForSetAndGivesUpInTime) {
  MemoryStore store;
  EXPECT_EQ(store.Get("k", milliseconds(1)).status().code(), StatusCode::kDeadlineExceeded);
  std::thread setter([&] { EXPECT_TRUE(store.Set("k", "v").ok()); });
  auto value = store.Get("k", milliseconds(30000));
  setter.join();
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, "v");
  EXPECT_TRUE(store.Set("k", "w").ok());
  EXPECT_EQ(store.Get("k", milliseconds(0)).value(), "w");
  EXPECT_EQ(store.Set("k", std::string((1 << 20) + 1, 'x')).code(), StatusCode::kInvalidArgument);
}

TEST(AbortSignal, TheFirstReasonStays) {
  AbortSignal abort;
  EXPECT_TRUE(abort.status().ok());
  abort.Raise(3, "first");
  abort.Raise(4, "second");
  EXPECT_TRUE(abort.IsRaised());
  EXPECT_EQ(abort.status().code(), StatusCode::kAborted);
  EXPECT_EQ(abort.status().lost_rank(), 3);
  EXPECT_EQ(abort.status().message(), "first");
}

class ContextTest : public testing::Test {
 protected:
  void SetUp() override { ClearEnvironment(); }
  void TearDown() override { ClearEnvironment(); }

  std::unique_ptr<Context> CreateRank(const FakeAgent& agent, int rank) {
    agent.SetEnvironment(rank);
    auto context = Context::Create();
    EXPECT_TRUE(context.ok()) << context.status().message();
    return context.ok() ? *std::move(context) : nullptr;
  }
};

TEST_F(ContextTest, WithoutALauncherItIsAWorldOfOne) {
  auto context = Context::Create();
  ASSERT_TRUE(context.ok());
  EXPECT_FALSE((*context)->is_launched());
  EXPECT_EQ((*context)->rank(), 0);
  EXPECT_EQ((*context)->world_size(), 1);
  EXPECT_FALSE((*context)->key().IsNone());
  EXPECT_TRUE((*context)->store().Set("k", "v").ok());
  EXPECT_TRUE((*context)->ReportShard({1, "/c"}, 1).ok());
  EXPECT_TRUE((*context)->ReportCommit({1, "/c"}).ok());
}

TEST_F(ContextTest, AWorkerLearnsItsPlaceAndSharesTheTable) {
  FakeAgent agent(2);
  agent.welcome().attempt = 4;
  agent.welcome().restarts_charged = 2;
  agent.welcome().resume = Commit{100, "/c/step-100"};
  agent.Start();
  auto zero = CreateRank(agent, 0), one = CreateRank(agent, 1);
  ASSERT_TRUE(zero && one);
  EXPECT_TRUE(one->is_launched());
  EXPECT_EQ(one->rank(), 1);
  EXPECT_EQ(one->local_rank(), 1);
  EXPECT_EQ(one->world_size(), 2);
  EXPECT_EQ(one->attempt(), 4);
  EXPECT_EQ(one->restarts_charged(), 2);
  EXPECT_EQ(one->resume(), (Commit{100, "/c/step-100"}));
  EXPECT_EQ(one->key(), agent.welcome().key);
  EXPECT_EQ(one->world(), agent.welcome().world);
  std::thread setter([&] { EXPECT_TRUE(zero->store().Set("k", std::string(1 << 20, 'v')).ok()); });
  auto value = one->store().Get("k", milliseconds(30000));
  setter.join();
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(value->size(), 1u << 20);
  EXPECT_EQ(zero->store().Get("absent", milliseconds(1)).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(zero->store().Set("k", std::string((1 << 20) + 1, 'x')).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(ContextTest, ADeviceIsNamedByTheEnvironmentAndAPlaceByTheAgent) {
  FakeAgent agent(2);
  agent.Start();
  // As with --virtual-local-rank.
  setenv(env::kLocalRank, "0", 1);
  auto one = CreateRank(agent, 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->local_rank(), 1);
  EXPECT_EQ(one->device_index(), 0);
  unsetenv(env::kLocalRank);
  auto zero = CreateRank(agent, 0);
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->device_index(), zero->local_rank());
}

TEST_F(ContextTest, CheckpointsAreReported) {
  FakeAgent agent(1);
  agent.Start();
  auto context = CreateRank(agent, 0);
  ASSERT_TRUE(context);
  EXPECT_TRUE(context->ReportShard({5, "/c"}, 3).ok());
  EXPECT_TRUE(context->ReportCommit({5, "/c"}).ok());
  ASSERT_EQ(agent.shards().size(), 1u);
  EXPECT_EQ(agent.shards()[0].shard_count, 3);
  EXPECT_EQ(agent.commits(), (std::vector<Commit>{{5, "/c"}}));
}

TEST_F(ContextTest, StepsAreReportedAndNobodySavesUnasked) {
  FakeAgent agent(1);
  agent.Start();
  auto context = CreateRank(agent, 0);
  ASSERT_TRUE(context);
  context->StepDone(4);
  EXPECT_FALSE(context->ShouldSave(5));
  EXPECT_EQ(agent.AwaitSteps(2), (std::vector<worker_channel::StepDone>{{4, false}, {5, true}}));
}

TEST_F(ContextTest, AllRanksSaveAfterTheStepThatRankZeroNames) {
  FakeAgent agent(2);
  agent.Start();
  auto zero = CreateRank(agent, 0), one = CreateRank(agent, 1);
  ASSERT_TRUE(zero && one);
  agent.Push(worker_channel::CheckpointWanted{});
  // Rank 0 sees it at one of its next steps, and waits there.
  std::atomic<int64_t> reached{0};
  std::thread trains([&] {
    while (!zero->ShouldSave(reached)) ++reached;
  });
  ASSERT_EQ(agent.AwaitAnnouncements(1).size(), 1u);
  const int64_t named = agent.AwaitAnnouncements(1).front();
  EXPECT_EQ(reached, named - 1);
  agent.Push(worker_channel::CheckpointAt{named});
  EXPECT_EQ(agent.AwaitKnown(2), (std::vector<int64_t>{named, named}));
  EXPECT_EQ(reached, named - 1) << "it goes on only when all know";
  agent.Agree();
  trains.join();
  EXPECT_EQ(reached, named);
  EXPECT_FALSE(one->ShouldSave(named - 1));
  EXPECT_TRUE(one->ShouldSave(named));
  EXPECT_FALSE(one->ShouldSave(named + 1)) << "once";
  // Told again, by a rendezvous that restarted, it isn't saved again.
  agent.Push(worker_channel::CheckpointAt{named});
  EXPECT_EQ(agent.AwaitKnown(4).size(), 4u);
  EXPECT_FALSE(one->ShouldSave(named + 2));
}

TEST_F(ContextTest, AProgramThatCountsInTensSavesAtItsNextStep) {
  FakeAgent agent(1);
  agent.Start();
  auto context = CreateRank(agent, 0);
  ASSERT_TRUE(context);
  agent.Push(worker_channel::CheckpointAt{11});
  EXPECT_EQ(agent.AwaitKnown(1).size(), 1u);
  EXPECT_FALSE(context->ShouldSave(10));
  EXPECT_TRUE(context->ShouldSave(20));
}

TEST_F(ContextTest, TheEndOfTheRoundEndsRankZerosWait) {
  FakeAgent agent(1);
  agent.Start();
  auto context = CreateRank(agent, 0);
  ASSERT_TRUE(context);
  agent.Push(worker_channel::CheckpointWanted{});
  std::thread trains([&] {
    for (int64_t step = 0; !context->abort_signal().IsRaised(); ++step) {
      (void)context->ShouldSave(step);
    }
  });
  ASSERT_EQ(agent.AwaitAnnouncements(1).size(), 1u);
  agent.PushAbort({agent.welcome().world.id, Rank(1), "rank 1 was killed"});
  trains.join();
}

TEST_F(ContextTest, AStepIsDroppedWhereTheAgentDoesntRead) {
  FakeAgent agent(1);
  agent.Start();
  auto context = CreateRank(agent, 0);
  ASSERT_TRUE(context);
  // More than any socket holds; nothing reads meanwhile but the fake agent's thread, which may be
  // slower. What counts is that this comes to its end.
  for (int64_t step = 0; step < 100'000; ++step) context->StepDone(step);
  EXPECT_GE(agent.AwaitSteps(1).size(), 1u);
}

TEST_F(ContextTest, APushNamesTheLostRankAndEndsWaits) {
  FakeAgent agent(2);
  agent.Start();
  auto context = CreateRank(agent, 0);
  ASSERT_TRUE(context);
  std::thread pusher([&] {
    // Of another world: late news, without effect.
    agent.PushAbort({base::FreshId<WorldId>(), Rank(0), "an old round"});
    agent.PushAbort({agent.welcome().world.id, Rank(1), "rank 1 was killed"});
  });
  AwaitAbort(*context);
  pusher.join();
  EXPECT_EQ(context->abort_signal().status().lost_rank(), 1);
  EXPECT_EQ(context->abort_signal().status().message(), "rank 1 was killed");
  EXPECT_EQ(context->store().Set("k", "v").code(), StatusCode::kAborted);
}

TEST_F(ContextTest, PingsAreAnsweredWhateverTheProgramDoes) {
  FakeAgent agent(1);
  agent.Start();
  auto context = CreateRank(agent, 0);
  // The main thread waits; the SDK's answers.
  agent.PushPing(4);
  agent.PushPing(5);
  std::vector<worker_channel::Pong> pongs = agent.AwaitPongs(2);
  ASSERT_EQ(pongs.size(), 2);
  EXPECT_EQ(pongs[0].number, 4);
  EXPECT_EQ(pongs[1].number, 5);
}

TEST_F(ContextTest, AnswersToPingsTellWhetherTheWorkerWaits) {
  FakeAgent agent(1);
  agent.Start();
  auto context = CreateRank(agent, 0);
  using Kind = Activity::Kind;
  auto answer = [&, count = size_t{0}]() mutable {
    agent.PushPing(1);
    std::vector<worker_channel::Pong> pongs = agent.AwaitPongs(++count);
    return pongs.size() == count ? pongs.back().activity.kind : Kind::kUnknown;
  };
  EXPECT_EQ(answer(), Kind::kUnknown);
  context->peer_waits().GroupMade();
  EXPECT_EQ(answer(), Kind::kOwnCode);
  {
    PeerWaits::Wait wait(&context->peer_waits());
    EXPECT_EQ(answer(), Kind::kWaits);
  }
  // A request to the agent is a wait: for a key that another rank is still to set.
  std::thread reader([&] { EXPECT_TRUE(context->store().Get("key", milliseconds(60000)).ok()); });
  Kind kind = Kind::kUnknown;
  while (kind != Kind::kWaits && !HasFailure()) kind = answer();
  EXPECT_TRUE(context->store().Set("key", "value").ok());
  reader.join();
  EXPECT_EQ(answer(), Kind::kOwnCode);
}

TEST_F(ContextTest, TheEndOfTheAgentIsAnAbort) {
  auto agent = std::make_unique<FakeAgent>(1);
  agent->Start();
  auto context = CreateRank(*agent, 0);
  ASSERT_TRUE(context);
  std::thread killer([&] { agent.reset(); });
  AwaitAbort(*context);
  killer.join();
  EXPECT_EQ(context->abort_signal().status().message(), "the agent is gone");
}

TEST_F(ContextTest, WithoutAnAgentThereItSaysSo) {
  setenv(env::kAgentSocket, "muster-test-no-such-agent", 1);
  setenv(env::kWorkerId, "fake/0", 1);
  auto context = Context::Create();
  EXPECT_EQ(context.status().code(), StatusCode::kUnavailable);
}

TEST_F(ContextTest, ASilentOrConfusedAgentIsGivenUp) {
  AbortSignal abort;
  FakeAgent silent(1);
  silent.BeSilent();
  silent.Start();
  auto channel = AgentChannel::Open({silent.socket_name(), "fake/0"}, abort, milliseconds(50));
  EXPECT_EQ(channel.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(channel.status().message().find("no answer within 50 ms"), std::string::npos);

  FakeAgent confused(1);
  confused.GreetWith("HTTP/1.1 400 Bad Request\r\n\r\n");
  confused.Start();
  channel = AgentChannel::Open({confused.socket_name(), "fake/0"}, abort);
  EXPECT_EQ(channel.status().code(), StatusCode::kUnavailable);

  FakeAgent refusing(1);
  refusing.GreetWith(worker_channel::Encode(worker_channel::Abort{{}, Rank(-1), "unknown worker"}));
  refusing.Start();
  channel = AgentChannel::Open({refusing.socket_name(), "fake/0"}, abort);
  EXPECT_EQ(channel.status().code(), StatusCode::kAborted);
  EXPECT_NE(channel.status().message().find("unknown worker"), std::string::npos);
}

TEST_F(ContextTest, AForkedChildIsToldAndHarmsNothing) {
  FakeAgent agent(1);
  // Forked before the agent serves: then this process has one thread, and the child may have more.
  pid_t worker = fork();
  ASSERT_GE(worker, 0);
  if (worker == 0) {
    agent.SetEnvironment(0);
    auto context = Context::Create();
    if (!context.ok()) _exit(10);
    pid_t child = fork();
    if (child == 0) {
      StatusCode code = (*context)->store().Set("k", "v").code();
      context->reset();
      _exit(code == StatusCode::kFailedPrecondition ? 0 : 11);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(12);
    _exit((*context)->store().Set("k", "v").ok() ? 0 : 13);
  }
  agent.Start();
  int status = 0;
  ASSERT_EQ(waitpid(worker, &status, 0), worker);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

}  // namespace
}  // namespace muster
