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
#include "rendezvous/server/rendezvous_test_kit.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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

TEST(RendezvousServer, AHostThatIsRefusedEndsAJobThatIsShortOfNodesAlone) {
  Trio running;
  running.server->HostRefused("the host was refused", 78);
  auto server = StartServer();
  FakeAgent waiting(server->port(), "node-b", Terms(2, 2));
  waiting.Attach();
  ASSERT_TRUE(waiting.observer().NextMessage<Attached>().has_value());
  server->HostRefused("the host was refused", 78);
  auto ended = waiting.observer().NextMessage<JobEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->verdict.exit_code, 78);
  EXPECT_NE(ended->verdict.reason.find("the host was refused"), std::string::npos);
  FakeAgent late(server->port(), "node-c", Terms(2, 2));
  late.Attach();
  ended = late.observer().NextMessage<JobEnded>();
  ASSERT_TRUE(ended.has_value()) << "whoever comes later is told too";
  EXPECT_EQ(ended->verdict.exit_code, 78);
  EXPECT_TRUE(running.agents[0]->Set("key", "value").ok()) << "that round goes on";
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
  EXPECT_EQ(set(bad), grpc::StatusCode::UNAVAILABLE);
  bad = good;
  bad.incarnation = base::FreshId<Incarnation>();
  EXPECT_EQ(set(bad), grpc::StatusCode::UNAVAILABLE);
  bad = good;
  bad.world.round = RoundId(9);
  EXPECT_EQ(set(bad), grpc::StatusCode::UNAVAILABLE);
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

}  // namespace
}  // namespace muster::rendezvous
