// The whole rendezvous over real gRPC on the loopback: wiring, not rules (those are the core's).
#include "rendezvous/server/rendezvous_server.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/entropy.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "proto/rendezvous.grpc.pb.h"
#include "proto/session_convert.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "rendezvous/client/probe.h"
#include "rendezvous/client/recording_observer.h"
#include "rendezvous/server/first_byte_listener.h"
#include "rendezvous/server/job_store.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

JobTerms Terms(int min_nodes, int max_nodes) {
  JobTerms terms;
  terms.run_id = "job";
  terms.min_nodes = min_nodes;
  terms.max_nodes = max_nodes;
  terms.max_restarts = 3;
  terms.last_call_timeout = milliseconds(100);
  terms.version = kVersion;
  return terms;
}

std::unique_ptr<RendezvousServer> StartServer(RendezvousServerOptions options = {}) {
  options.host = "127.0.0.1";
  options.standalone = true;
  auto server = RendezvousServer::Start(options);
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

// As much of an agent as the rendezvous sees.
class FakeAgent {
 public:
  FakeAgent(uint16_t port, std::string name, JobTerms terms)
      : client_(NewGrpcRendezvousClient({.host = "127.0.0.1", .port = port}, &observer_)) {
    attach_.incarnation = base::FreshId<Incarnation>();
    attach_.node_name = std::move(name);
    attach_.address = "127.0.0.1";
    attach_.worker_count = 2;
    attach_.terms = std::move(terms);
    attach_.candidate_port = 29400;
  }

  // Attaches, or attaches again on a new stream.
  void Attach() {
    uint64_t connection = client_->Connect();
    while (auto connected = observer_.NextOf<RecordingObserver::Connected>()) {
      if (connected->connection == connection) break;
    }
    client_->Send(attach_);
  }
  // Waits for the next StartRound and remembers its world.
  std::optional<StartRound> AwaitStart() {
    auto start = observer_.NextMessage<StartRound>();
    if (start) {
      world_ = start->world;
      attach_.running = RunningWorld{
          start->world,      start->group_rank,       start->group_world_size, start->first_rank,
          start->world_size, start->restarts_charged, start->resume,           false};
      attach_.highest_round = start->world.round;
    }
    return start;
  }
  void AcknowledgeStop() {
    auto stop = observer_.NextMessage<StopRound>();
    ASSERT_TRUE(stop.has_value());
    attach_.running.reset();
    client_->Send(StopDone{stop->world, 29401});
  }

  void SetHighestRound(RoundId round) { attach_.highest_round = round; }
  RoundScope scope() const { return {"job", attach_.incarnation, world_}; }
  const World& world() const { return world_; }
  // As the last StartRound said.
  GroupRank group_rank() const { return attach_.running->group_rank; }
  const std::optional<Commit>& resume() const { return attach_.running->last_commit; }
  RecordingObserver& observer() { return observer_; }
  RendezvousClient& client() { return *client_; }
  void Leave() {
    client_->Send(muster::Leave{"done"});
    client_->Disconnect();
  }
  // As a SIGKILL does.
  void Kill() { client_.reset(); }

  absl::Status Set(const std::string& key, const std::string& value) {
    std::promise<absl::Status> done;
    client_->SetKey(scope(), key, value, [&](absl::Status s) { done.set_value(std::move(s)); });
    return done.get_future().get();
  }
  std::future<absl::StatusOr<std::string>> Get(const std::string& key, Duration wait) {
    auto done = std::make_shared<std::promise<absl::StatusOr<std::string>>>();
    client_->GetKey(scope(), key, wait,
                    [done](absl::StatusOr<std::string> a) { done->set_value(std::move(a)); });
    return done->get_future();
  }

 private:
  RecordingObserver observer_;
  std::unique_ptr<RendezvousClient> client_;
  muster::Attach attach_;
  World world_;
};

// Three agents of one job that run their first round.
struct Trio {
  explicit Trio(const RendezvousServerOptions& options = {}) : server(StartServer(options)) {
    for (const char* name : {"node-a", "node-b", "node-c"})
      agents.push_back(std::make_unique<FakeAgent>(server->port(), name, Terms(2, 3)));
    for (auto& agent : agents) agent->Attach();
    for (auto& agent : agents) EXPECT_TRUE(agent->AwaitStart().has_value());
  }
  std::unique_ptr<proto::Rendezvous::Stub> Stub() {
    return proto::Rendezvous::NewStub(grpc::CreateChannel(
        "127.0.0.1:" + std::to_string(server->port()), grpc::InsecureChannelCredentials()));
  }

  std::unique_ptr<RendezvousServer> server;
  std::vector<std::unique_ptr<FakeAgent>> agents;
};

std::chrono::system_clock::time_point In(Duration wait) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(wait);
}

TEST(RendezvousServer, FormsAWorldAndFormsItAgainWithoutAKilledNode) {
  Trio trio;
  for (auto& agent : trio.agents) {
    EXPECT_EQ(agent->world().round, RoundId(1));
    EXPECT_EQ(agent->world().id, trio.agents[0]->world().id);
  }
  trio.agents[2]->Kill();
  trio.agents[0]->AcknowledgeStop();
  trio.agents[1]->AcknowledgeStop();
  for (int i : {0, 1}) {
    auto start = trio.agents[i]->AwaitStart();
    ASSERT_TRUE(start.has_value());
    EXPECT_EQ(start->world.round, RoundId(2));
    EXPECT_EQ(start->world_size, 4);
    EXPECT_EQ(start->first_rank, Rank(2 * start->group_rank.value));
    EXPECT_EQ(start->restarts_charged, 0);
  }
}

// Closes what it is given.
class Closer : public NonGrpcAcceptor {
 public:
  void Accept(int fd, std::optional<uint8_t>) override { close(fd); }
};

TEST(RendezvousServer, TellsOfEachRoundOfItsHostsJobBeforeItsAgentsAreTold) {
  Closer closer;
  std::atomic<int> rounds = 0;
  RendezvousServerOptions options;
  options.non_grpc = &closer;
  options.on_round = [&rounds] { ++rounds; };
  options.non_grpc_job = "job";
  Trio trio(options);
  EXPECT_EQ(rounds, 1);
  JobTerms other_terms = Terms(1, 1);
  other_terms.run_id = "another job";
  FakeAgent other(trio.server->port(), "node-x", other_terms);
  other.Attach();
  ASSERT_TRUE(other.AwaitStart().has_value());
  EXPECT_EQ(rounds, 1);
  trio.agents[2]->Kill();
  trio.agents[0]->AcknowledgeStop();
  trio.agents[1]->AcknowledgeStop();
  ASSERT_TRUE(trio.agents[0]->AwaitStart().has_value());
  EXPECT_EQ(rounds, 2);
}

TEST(RendezvousServer, AnAgentThatAttachesAgainStopsNothing) {
  // Enough for a loaded machine: here the point is that the grace is used.
  Trio trio({.job = {.reattach_grace = seconds(10)}});
  trio.agents[1]->Attach();
  EXPECT_TRUE(trio.agents[1]->observer().NextMessage<Attached>().has_value());
  trio.agents[1]->client().Send(Heartbeat{7});
  auto ack = trio.agents[1]->observer().NextMessage<HeartbeatAck>();
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->sequence, 7u);
  EXPECT_TRUE(trio.agents[0]->Set("still", "the same round").ok());
}

TEST(RendezvousServer, ASilentAgentIsLostWhenItsLeaseIsOver) {
  auto server = StartServer({.job = {.lease = milliseconds(500)}});
  FakeAgent talks(server->port(), "node-a", Terms(1, 2)),
      silent(server->port(), "node-b", Terms(1, 2));
  talks.Attach();
  silent.Attach();
  ASSERT_TRUE(talks.AwaitStart().has_value());
  std::optional<StopRound> stop;
  const auto give_up = std::chrono::steady_clock::now() + seconds(30);
  for (uint64_t n = 1; !stop && std::chrono::steady_clock::now() < give_up; ++n) {
    talks.client().Send(Heartbeat{n});
    if (auto message = talks.observer().NextOf<RecordingObserver::Message>(milliseconds(50))) {
      if (auto* found = std::get_if<StopRound>(&message->message)) stop = *found;
    }
  }
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->cause, StopCause::kPeerLost);
  EXPECT_NE(stop->reason.find("node-b"), std::string::npos) << stop->reason;
}

TEST(RendezvousServer, AJobEndsForAllAndLateJoinersAreToldSo) {
  Trio trio;
  for (auto& agent : trio.agents) agent->client().Send(NodeSucceeded{agent->world()});
  for (auto& agent : trio.agents) {
    auto ended = agent->observer().NextMessage<JobEnded>();
    ASSERT_TRUE(ended.has_value());
    EXPECT_TRUE(ended->verdict.succeeded);
    agent->Leave();
  }
  FakeAgent late(trio.server->port(), "node-d", Terms(2, 3));
  late.Attach();
  auto ended = late.observer().NextMessage<JobEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->verdict.succeeded);
  late.Leave();
  EXPECT_TRUE(trio.server->WaitUntilIdle(seconds(20)));
}

TEST(RendezvousServer, AHostThatStopsEndsTheJobForItsAgents) {
  Trio trio;
  trio.server->HostStopping("node-a was stopped by SIGINT", 130);
  auto ended = trio.agents[1]->observer().NextMessage<JobEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->verdict.exit_code, 130);
  EXPECT_NE(ended->verdict.reason.find("SIGINT"), std::string::npos);
}

TEST(RendezvousServer, WaitsForAttachedAgentsBeforeItIsIdle) {
  Trio trio;
  EXPECT_FALSE(trio.server->WaitUntilIdle(milliseconds(50)));
  for (auto& agent : trio.agents) agent->Leave();
  EXPECT_TRUE(trio.server->WaitUntilIdle(seconds(20)));
}

TEST(RendezvousServer, KeysAreSeenByAllAndEndWithTheirRound) {
  Trio trio;
  auto waiting = trio.agents[1]->Get("address", seconds(30));
  EXPECT_TRUE(trio.agents[0]->Set("address", "10.0.0.1:5000").ok());
  EXPECT_EQ(*waiting.get(), "10.0.0.1:5000");
  EXPECT_EQ(*trio.agents[2]->Get("address", Duration(0)).get(), "10.0.0.1:5000");
  EXPECT_EQ(trio.agents[2]->Get("other", Duration(0)).get().status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(trio.agents[2]->Get("other", milliseconds(20)).get().status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(trio.agents[0]->Set("", "v").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(trio.agents[0]->Set("big", std::string((1 << 20) + 1, 'x')).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(trio.agents[0]->Set("largest", std::string(1 << 20, 'x')).ok());

  auto in_vain = trio.agents[0]->Get("never set", seconds(30));
  trio.agents[2]->Kill();
  trio.agents[0]->AcknowledgeStop();
  trio.agents[1]->AcknowledgeStop();
  EXPECT_EQ(in_vain.get().status().code(), absl::StatusCode::kAborted);
  // The old round's scope is stale for good.
  EXPECT_EQ(trio.agents[0]->Set("address", "old").code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(trio.agents[0]->AwaitStart().has_value());
  EXPECT_EQ(trio.agents[0]->Get("address", Duration(0)).get().status().code(),
            absl::StatusCode::kNotFound);
}

TEST(RendezvousServer, KeyCallsAreFenced) {
  Trio trio;
  auto stub = trio.Stub();
  auto set = [&](const RoundScope& scope) {
    proto::SetKeyRequest request;
    *request.mutable_scope() = ToProto(scope);
    request.set_key("k");
    proto::SetKeyReply reply;
    grpc::ClientContext context;
    context.set_deadline(In(seconds(20)));
    return stub->SetKey(&context, request, &reply).error_code();
  };
  const RoundScope good = trio.agents[0]->scope();
  EXPECT_EQ(set(good), grpc::StatusCode::OK);
  RoundScope bad = good;
  bad.run_id = "no such job";
  EXPECT_EQ(set(bad), grpc::StatusCode::NOT_FOUND);
  bad = good;
  bad.incarnation = base::FreshId<Incarnation>();
  EXPECT_EQ(set(bad), grpc::StatusCode::ABORTED);
  bad = good;
  bad.world.round = RoundId(9);
  EXPECT_EQ(set(bad), grpc::StatusCode::ABORTED);
  bad = good;
  bad.world.id = base::FreshId<WorldId>();
  EXPECT_EQ(set(bad), grpc::StatusCode::ABORTED);
  bad = good;
  bad.run_id.clear();
  EXPECT_EQ(set(bad), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(RendezvousServer, ARoundHoldsAtMostItsBytes) {
  Trio trio;
  const std::string megabyte(1 << 20, 'x');
  absl::Status status;
  for (int i = 0; i < 70 && status.ok(); ++i)
    status = trio.agents[0]->Set("key" + std::to_string(i), megabyte);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(RendezvousServer, ABarrierOpensWhenAllHaveCome) {
  Trio trio;
  auto stub = trio.Stub();
  auto arrive = [&](int participant, int count, Duration wait) {
    proto::BarrierRequest request;
    *request.mutable_scope() = ToProto(trio.agents[0]->scope());
    request.set_name("before training");
    request.set_participant(participant);
    request.set_count(count);
    request.set_wait_ms(wait / milliseconds(1));
    proto::BarrierReply reply;
    grpc::ClientContext context;
    context.set_deadline(In(seconds(30)));
    return stub->Barrier(&context, request, &reply).error_code();
  };
  EXPECT_EQ(arrive(0, 2, milliseconds(20)), grpc::StatusCode::DEADLINE_EXCEEDED);
  auto first = std::async(std::launch::async, [&] { return arrive(0, 2, seconds(30)); });
  EXPECT_EQ(arrive(1, 2, seconds(30)), grpc::StatusCode::OK);
  EXPECT_EQ(first.get(), grpc::StatusCode::OK);
  EXPECT_EQ(arrive(1, 2, Duration(0)), grpc::StatusCode::OK);
  EXPECT_EQ(arrive(1, 3, Duration(0)), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(arrive(3, 3, Duration(0)), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(RendezvousServer, TellsItsStateAndItsChanges) {
  Trio trio;
  auto stub = trio.Stub();
  proto::GetStatusRequest request;
  proto::GetStatusReply status;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->GetStatus(&context, request, &status).ok());
  }
  ASSERT_EQ(status.jobs_size(), 1);
  EXPECT_EQ(status.jobs(0).run_id(), "job");
  EXPECT_EQ(status.jobs(0).state(), "running");
  EXPECT_EQ(status.jobs(0).world().round(), 1u);
  EXPECT_EQ(status.jobs(0).nodes_size(), 3);
  request.set_run_id("no such job");
  {
    grpc::ClientContext context;
    EXPECT_EQ(stub->GetStatus(&context, request, &status).error_code(),
              grpc::StatusCode::NOT_FOUND);
  }

  grpc::ClientContext context;
  context.set_deadline(In(seconds(30)));
  auto watch = stub->Watch(&context, proto::WatchRequest());
  watch->WaitForInitialMetadata();
  trio.agents[2]->Kill();
  proto::WatchEvent event;
  bool names_the_node = false;
  while (!names_the_node && watch->Read(&event)) {
    EXPECT_EQ(event.run_id(), "job");
    names_the_node = event.text().find("node-c") != std::string::npos;
  }
  EXPECT_TRUE(names_the_node);
  EXPECT_GT(event.wall_time_ms(), 0);
}

TEST(RendezvousServer, WhoOnlyWatchesMayAskForSignsOfLife) {
  auto server = StartServer();
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 1100);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  auto stub = proto::Rendezvous::NewStub(grpc::CreateCustomChannel(
      "127.0.0.1:" + std::to_string(server->port()), grpc::InsecureChannelCredentials(), args));
  grpc::ClientContext context;
  // gRPC's own limits would end the stream with the fourth.
  context.set_deadline(In(milliseconds(6000)));
  auto watch = stub->Watch(&context, proto::WatchRequest());
  proto::WatchEvent event;
  EXPECT_FALSE(watch->Read(&event));
  const grpc::Status end = watch->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << end.error_message();
}

// What the server answers to a stream that begins with `message`.
grpc::Status FirstMessage(uint16_t port, const proto::AgentMessage& message) {
  auto stub = proto::Rendezvous::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(In(seconds(20)));
  auto stream = stub->Session(&context);
  stream->Write(message);
  proto::RendezvousMessage answer;
  while (stream->Read(&answer)) continue;
  return stream->Finish();
}

TEST(RendezvousServer, RefusesStreamsThatBeginWrong) {
  auto server = StartServer();
  EXPECT_EQ(FirstMessage(server->port(), ToProto(AgentMessage(Heartbeat{1}))).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  grpc::Status malformed = FirstMessage(server->port(), proto::AgentMessage());
  EXPECT_EQ(malformed.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(malformed.error_message().find("no known kind"), std::string::npos);
}

TEST(RendezvousServer, AnAgentThatDoesNotReadIsCutOffAndOthersGoOn) {
  auto server = StartServer();
  // A small and fixed window: else this side buffers megabytes of what nobody reads.
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65535);
  auto stub = proto::Rendezvous::NewStub(grpc::CreateCustomChannel(
      "127.0.0.1:" + std::to_string(server->port()), grpc::InsecureChannelCredentials(), args));
  grpc::ClientContext context;
  context.set_deadline(In(seconds(60)));
  auto stream = stub->Session(&context);
  muster::Attach attach;
  attach.incarnation = base::FreshId<Incarnation>();
  attach.node_name = "node-a";
  attach.terms = Terms(2, 2);
  bool is_open = stream->Write(ToProto(AgentMessage(attach)));
  int sent = 0;
  for (; is_open && sent < 1'000'000; ++sent)
    is_open = stream->Write(ToProto(AgentMessage(Heartbeat{~uint64_t{0}})));
  EXPECT_FALSE(is_open);
  EXPECT_GT(sent, 1000);
  // gRPC tells the status only after what had arrived before it is read.
  proto::RendezvousMessage message;
  while (stream->Read(&message)) continue;
  EXPECT_NE(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << sent;
  EXPECT_EQ(Probe("127.0.0.1", server->port(), seconds(20)).answer, ProbeAnswer::kMuster);
}

TEST(RendezvousServer, OwnsItsPortAlone) {
  auto server = StartServer();
  auto second = RendezvousServer::Start({.host = "127.0.0.1", .port = server->port()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
  EXPECT_NE(second.status().message().find(std::to_string(server->port())), std::string::npos);
  ProbeResult who = Probe("127.0.0.1", server->port(), seconds(20));
  EXPECT_EQ(who.answer, ProbeAnswer::kMuster) << who.detail;
  EXPECT_EQ(who.detail, kVersion);
}

TEST(RendezvousServer, AfterShutdownThePortIsFreeAndAgentsSeeUnavailable) {
  Trio trio;
  const uint16_t port = trio.server->port();
  trio.server->Shutdown();
  for (auto& agent : trio.agents) {
    auto gone = agent->observer().NextOf<RecordingObserver::Disconnected>();
    ASSERT_TRUE(gone.has_value());
    EXPECT_EQ(gone->why.code(), absl::StatusCode::kUnavailable) << gone->why;
  }
  auto again = RendezvousServer::Start({.host = "127.0.0.1", .port = port});
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST(RendezvousServer, TellsAgentsWhetherTheyReachItAtItsOwnAddress) {
  auto server = StartServer();
  const uint16_t port = server->port();
  RecordingObserver observer;
  auto client = NewGrpcRendezvousClient({.host = "127.0.0.1", .port = port}, &observer);
  auto is_refused = [&client] {
    std::promise<bool> answer;
    client->ProbeEndpoint([&](bool refused) { answer.set_value(refused); });
    return answer.get_future().get();
  };
  // Before the rendezvous has said what it knows, a refusal says nothing.
  EXPECT_FALSE(client->IsToOwnAddress());
  EXPECT_FALSE(is_refused());
  client->Connect();
  ASSERT_TRUE(observer.NextOf<RecordingObserver::Connected>().has_value());
  EXPECT_TRUE(client->IsToOwnAddress());
  EXPECT_FALSE(is_refused());
  server->Shutdown();
  ASSERT_TRUE(observer.NextOf<RecordingObserver::Disconnected>().has_value());
  EXPECT_TRUE(is_refused());
  // Still known while the next stream is being opened.
  client->Connect();
  EXPECT_TRUE(is_refused());
}

TEST(RendezvousServer, AnAddressThatIsNotItsOwnIsNotCalledSo) {
  // As a balancer's that forwards to it would.
  auto server = StartServer();
  grpc::ClientContext context;
  context.set_deadline(In(seconds(60)));
  context.AddMetadata("muster-connected-to", "192.0.2.1");
  auto stub = proto::Rendezvous::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(server->port()), grpc::InsecureChannelCredentials()));
  auto stream = stub->Session(&context);
  stream->WaitForInitialMetadata();
  const auto& metadata = context.GetServerInitialMetadata();
  EXPECT_NE(metadata.find("muster-version"), metadata.end());
  EXPECT_EQ(metadata.find("muster-own-address"), metadata.end());
  context.TryCancel();
}

TEST(RendezvousServer, ARestartedOneRecoversTheRunningWorld) {
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

TEST(RendezvousServer, KeepsRoundCommitAndResultOverARestart) {
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

TEST(RendezvousServer, AJobThatIsToBeRunAgainBeginsAnewUnderItsName) {
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

TEST(RendezvousServer, AJobThatNobodyComesBackToIsForgotten) {
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
  EXPECT_EQ((*JobStore::Open(dir))->jobs().size(), 0U);
}

}  // namespace
}  // namespace muster::rendezvous
