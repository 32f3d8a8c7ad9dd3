// A rendezvous that comes back: with an empty memory, and with a state directory.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/entropy.h"
#include "gtest/gtest.h"
#include "proto/rendezvous.grpc.pb.h"
#include "proto/session_convert.h"
#include "rendezvous/server/job_store.h"
#include "rendezvous/server/rendezvous_test_kit.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

// What setting a key answers over a channel of its own: an agent's calls may overtake its Attach.
grpc::StatusCode SetAnswer(Trio& trio, const RoundScope& scope) {
  proto::SetKeyRequest request;
  *request.mutable_scope() = ToProto(scope);
  request.set_key("key");
  proto::SetKeyReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(20));
  return trio.Stub()->SetKey(&context, request, &reply).error_code();
}

// A worker tries again after Unavailable, and gives up after Aborted: that would cost a restart.
void ExpectCallsToOutlastARestart(const RendezvousServerOptions& options) {
  Trio trio(options);
  const RoundScope first = trio.agents[0]->scope();
  const RoundScope second = trio.agents[1]->scope();
  RendezvousServerOptions again = options;
  again.host = "127.0.0.1";
  again.port = trio.server->port();
  trio.server.reset();
  trio.server = StartServer(again);
  EXPECT_EQ(SetAnswer(trio, first), grpc::StatusCode::UNAVAILABLE) << "nobody is attached yet";
  trio.agents[0]->Attach();
  ASSERT_TRUE(trio.agents[0]->observer().NextMessage<Attached>().has_value());
  EXPECT_EQ(SetAnswer(trio, second), grpc::StatusCode::UNAVAILABLE) << "it isn't attached yet";
  for (int i : {1, 2}) {
    trio.agents[i]->Attach();
    ASSERT_TRUE(trio.agents[i]->observer().NextMessage<Attached>().has_value());
  }
  EXPECT_EQ(SetAnswer(trio, first), grpc::StatusCode::OK);
  EXPECT_EQ(SetAnswer(trio, second), grpc::StatusCode::OK);
  RoundScope over = first;
  over.world.id = base::FreshId<WorldId>();
  EXPECT_EQ(SetAnswer(trio, over), grpc::StatusCode::ABORTED);
}

TEST(RendezvousRestart, KeyCallsBeforeTheirAgentIsAttachedAreToBeTriedAgain) {
  ExpectCallsToOutlastARestart({});
  ExpectCallsToOutlastARestart(
      {.state_dir = ::testing::TempDir() + "/calls_of_restart_test." + std::to_string(getpid())});
}

TEST(RendezvousRestart, ARestartedOneRecoversTheRunningWorld) {
  Trio trio;
  const uint16_t port = trio.server->port();
  trio.server.reset();
  auto again = RendezvousServer::Start({.host = "127.0.0.1", .port = port});
  ASSERT_TRUE(again.ok()) << again.status();
  for (auto& agent : trio.agents) {
    agent->Attach();
    EXPECT_TRUE(agent->observer().NextMessage<Attached>().has_value());
  }
  // The round goes on under its old name, and its table is open (and empty).
  EXPECT_TRUE(trio.agents[2]->Set("key", "value").ok());
  EXPECT_EQ(*trio.agents[0]->Get("key", Duration(0)).get(), "value");
}

TEST(RendezvousRestart, KeepsRoundCommitAndResultOverARestart) {
  const std::string dir = ::testing::TempDir() + "/jobs_of_server_test." + std::to_string(getpid());
  const Commit commit{40, "/shared/step-40"};
  {
    Trio trio({.state_dir = dir});
    EXPECT_EQ(trio.agents[0]->world().round, RoundId(1));
    for (auto& agent : trio.agents) {
      if (agent->group_rank() != GroupRank(0)) continue;
      agent->client().Send(CommitDone{agent->world(), commit});
      EXPECT_EQ(agent->observer().NextMessage<CommitNoted>()->commit, commit);
    }
  }
  {
    auto server = StartServer({.state_dir = dir});
    // One was in the job, and knows nothing of the commit.
    FakeAgent veteran(server->port(), "node-a", Terms(2, 2));
    FakeAgent newcomer(server->port(), "node-b", Terms(2, 2));
    veteran.SetHighestRound(RoundId(1));
    for (FakeAgent* agent : {&veteran, &newcomer}) agent->Attach();
    for (FakeAgent* agent : {&veteran, &newcomer}) {
      ASSERT_TRUE(agent->AwaitStart().has_value());
      EXPECT_EQ(agent->world().round, RoundId(2));
      EXPECT_EQ(agent->resume(), commit);
      agent->client().Send(NodeSucceeded{agent->world()});
    }
    for (FakeAgent* agent : {&veteran, &newcomer})
      EXPECT_TRUE(agent->observer().NextMessage<JobEnded>()->verdict.succeeded);
  }
  auto server = StartServer({.state_dir = dir});
  FakeAgent late(server->port(), "late", Terms(2, 3));
  late.Attach();
  EXPECT_TRUE(late.observer().NextMessage<JobEnded>()->verdict.succeeded);
}

TEST(RendezvousRestart, AJobThatIsToBeRunAgainBeginsAnewUnderItsName) {
  Trio trio;
  trio.agents[0]->Leave();
  trio.agents[1]->Leave();
  trio.agents[2]->AcknowledgeStop();
  auto ended = trio.agents[2]->observer().NextMessage<JobEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->verdict.exit_code, 75);
  trio.agents.clear();
  ASSERT_TRUE(trio.server->WaitUntilIdle(std::chrono::seconds(60)));
  FakeAgent a(trio.server->port(), "node-a", Terms(2, 2)),
      b(trio.server->port(), "node-b", Terms(2, 2));
  a.Attach();
  b.Attach();
  EXPECT_EQ(a.AwaitStart()->world.round, RoundId(2)) << "rounds only grow";
  ASSERT_TRUE(b.AwaitStart().has_value());
  // One that failed is told to whoever comes late.
  a.client().Send(NodeSucceeded{a.world()});
  b.client().Send(NodeSucceeded{b.world()});
  for (FakeAgent* agent : {&a, &b})
    EXPECT_TRUE(agent->observer().NextMessage<JobEnded>()->verdict.succeeded);
  FakeAgent late(trio.server->port(), "node-c", Terms(2, 2));
  late.Attach();
  EXPECT_TRUE(late.observer().NextMessage<JobEnded>()->verdict.succeeded);
}

TEST(RendezvousRestart, AJobThatNobodyComesBackToIsForgotten) {
  const std::string dir = ::testing::TempDir() + "/unclaimed." + std::to_string(getpid());
  { Trio trio({.state_dir = dir}); }
  RendezvousServerOptions options{.state_dir = dir};
  options.retention = std::chrono::milliseconds(300);
  auto server = StartServer(options);
  auto stub = proto::Rendezvous::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(server->port()), grpc::InsecureChannelCredentials()));
  int jobs = 1;
  while (jobs > 0) {
    grpc::ClientContext context;
    proto::GetStatusReply reply;
    ASSERT_TRUE(stub->GetStatus(&context, {}, &reply).ok());
    jobs = reply.jobs_size();
    if (jobs > 0) {
      EXPECT_EQ(reply.jobs(0).world().round(), 1);
    }
  }
  server.reset();
  EXPECT_EQ((*JobStore::Open(dir))->found().size(), 0U);
}

}  // namespace
}  // namespace muster::rendezvous
