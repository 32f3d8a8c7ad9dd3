// `Drain` over real gRPC on the loopback, as `muster drain` calls it: its answers, its errors, and
// a caller that goes away. When a node may leave is a rule of the core's.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>

#include "base/entropy.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/admin_client.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "rendezvous/client/recording_observer.h"
#include "rendezvous/server/rendezvous_server.h"

namespace muster::rendezvous {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kPatience = seconds(20);

std::unique_ptr<RendezvousServer> StartServer() {
  // Nobody here sends heartbeats.
  auto server = RendezvousServer::Start(
      {.host = "127.0.0.1", .job = {.lease = seconds(60)}, .standalone = true});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

// As much of an agent as leaves when it is told to.
class LeavingAgent {
 public:
  LeavingAgent(uint16_t port, const std::string& name, bool hosts_rendezvous = false,
               int min_nodes = 1)
      : client_(NewGrpcRendezvousClient({.host = "127.0.0.1", .port = port}, &observer_)) {
    client_->Connect();
    EXPECT_TRUE(observer_.NextOf<RecordingObserver::Connected>().has_value());
    Attach attach;
    attach.incarnation = base::FreshId<Incarnation>();
    attach.node_name = name;
    attach.address = "127.0.0.1";
    attach.terms.run_id = "job";
    attach.terms.min_nodes = min_nodes;
    attach.terms.max_nodes = min_nodes + 1;
    attach.terms.version = kVersion;
    attach.candidate_port = 29400;
    attach.hosts_rendezvous = hosts_rendezvous;
    client_->Send(attach);
  }
  bool IsLetGo() { return observer_.NextMessage<JobEnded>(kPatience).has_value(); }
  void AwaitStart() { EXPECT_TRUE(observer_.NextMessage<StartRound>().has_value()); }
  bool IsToldToStop(Duration most = kPatience) {
    stop_ = observer_.NextMessage<StopRound>(most);
    return stop_.has_value();
  }
  void Stop() { client_->Send(StopDone{stop_->world, 29401}); }

 private:
  RecordingObserver observer_;
  std::unique_ptr<RendezvousClient> client_;
  std::optional<StopRound> stop_;
};

// Two nodes of one job that run its first round.
struct Pair {
  explicit Pair(bool leaver_hosts = false)
      : server(StartServer()),
        stays(server->port(), "node-a"),
        leaves(server->port(), "node-b", leaver_hosts),
        admin("127.0.0.1", server->port()) {
    stays.AwaitStart();
    leaves.AwaitStart();
  }
  absl::StatusOr<DrainReport> Drain(const AdminClient::DrainOrder& order) {
    return admin.Drain(order, kPatience);
  }

  std::unique_ptr<RendezvousServer> server;
  LeavingAgent stays;
  LeavingAgent leaves;
  AdminClient admin;
};

TEST(DrainCall, AnswersWhenTheNodeIsGone) {
  Pair pair;
  auto answer = std::async(std::launch::async, [&] {
    return pair.Drain({.run_id = "job", .node = "node-b", .wait = seconds(60)});
  });
  ASSERT_TRUE(pair.leaves.IsToldToStop());
  ASSERT_TRUE(pair.stays.IsToldToStop());
  EXPECT_EQ(answer.wait_for(seconds(0)), std::future_status::timeout) << "it is still here";
  pair.leaves.Stop();
  pair.stays.Stop();
  const absl::StatusOr<DrainReport> told = answer.get();
  EXPECT_EQ(told.value_or(DrainReport()).agents, 1) << told.status();
}

TEST(DrainCall, OfTheHostItSaysThatItsProcessStays) {
  Pair pair(/*leaver_hosts=*/true);
  auto answer = std::async(std::launch::async, [&] {
    return pair.Drain({.run_id = "job", .node = "node-b", .wait = seconds(60)});
  });
  ASSERT_TRUE(pair.leaves.IsToldToStop());
  ASSERT_TRUE(pair.stays.IsToldToStop());
  pair.leaves.Stop();
  pair.stays.Stop();
  const DrainReport told = answer.get().value_or(DrainReport());
  EXPECT_EQ(told.agents, 1);
  EXPECT_TRUE(told.host_stays);
  // Asked again it is known though it is in the job no more.
  for (Duration wait : {Duration(0), Duration(seconds(60))}) {
    const DrainReport again =
        pair.Drain({.run_id = "job", .node = "node-b", .wait = wait}).value_or(DrainReport());
    EXPECT_EQ(again.agents, 0);
    EXPECT_TRUE(again.host_stays);
  }
  const auto jobs = pair.admin.Jobs("job", kPatience);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->front().departed_host, "node-b");
}

TEST(DrainCall, AHostThatWaitsAloneHasNobodyToStayFor) {
  auto server = StartServer();
  AdminClient admin("127.0.0.1", server->port());
  LeavingAgent host(server->port(), "node-a", /*hosts_rendezvous=*/true, /*min_nodes=*/2);
  const auto is_there = [&] {
    const auto jobs = admin.Jobs(std::nullopt, kPatience);
    return jobs.ok() && !jobs->empty() && !jobs->front().nodes.empty();
  };
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!is_there() && std::chrono::steady_clock::now() < end) continue;
  const absl::StatusOr<DrainReport> told =
      admin.Drain({.run_id = std::nullopt, .node = "node-a", .wait = seconds(60)}, kPatience);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->agents, 1);
  EXPECT_FALSE(told->host_stays);
  EXPECT_TRUE(host.IsLetGo());
}

TEST(DrainCall, AWaitThatIsOverIsToldFromAnOrderThatFailed) {
  Pair pair;
  // The shortest wait is one: without any the answer would say nothing of the node's end.
  for (Duration wait : {Duration(microseconds(10)), Duration(milliseconds(20))}) {
    const absl::Status status =
        pair.Drain({.run_id = std::nullopt, .node = "node-b", .wait = wait}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(status.message(), "node \"node-b\" is to leave, but is still here");
  }
  EXPECT_TRUE(pair.leaves.IsToldToStop()) << "the order stands";
}

TEST(DrainCall, UnknownJobsAndNodesAreNamed) {
  Pair pair;
  const struct {
    std::optional<std::string> run_id;
    std::string node;
    std::string message;
  } kCases[] = {
      {"other", "node-b", "no job \"other\" is here"},
      {"", "node-b", "no job \"\" is here"},
      {"job", "node-c", "no node \"node-c\" is in job \"job\" here; there are: node-a, node-b"},
      {std::nullopt, "node-c", "no node \"node-c\" is in any job here; there are: node-a, node-b"},
      {std::nullopt, "", "no node \"\" is in any job here; there are: node-a, node-b"},
  };
  for (const auto& c : kCases) {
    for (Duration wait : {Duration(0), Duration(seconds(60))}) {
      const absl::Status status =
          pair.Drain({.run_id = c.run_id, .node = c.node, .wait = wait}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
      EXPECT_EQ(status.message(), c.message);
    }
  }
}

TEST(DrainCall, WithoutAgentsThereIsNoNode) {
  auto server = StartServer();
  AdminClient admin("127.0.0.1", server->port());
  const absl::Status status =
      admin.Drain({.run_id = std::nullopt, .node = "node-a"}, kPatience).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_EQ(status.message(), "no node \"node-a\" is in any job here; there is no node");
}

TEST(DrainCall, WithoutARendezvousItCanNotBeReached) {
  auto server = StartServer();
  AdminClient admin("127.0.0.1", server->port());
  server->Shutdown();
  const absl::Status status =
      admin.Drain({.run_id = std::nullopt, .node = "node-a"}, kPatience).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

// Takes every order and never answers.
class SilentRendezvous : public proto::Rendezvous::CallbackService {
 public:
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* /*context*/,
                                  const proto::DrainRequest* /*request*/,
                                  proto::DrainReply* /*reply*/) override {
    class Silence : public grpc::ServerUnaryReactor {
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }
    };
    return new Silence;
  }
};

TEST(DrainCall, ARendezvousThatDoesNotAnswerIsNotTakenForALongDrain) {
  SilentRendezvous service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  AdminClient admin("127.0.0.1", static_cast<uint16_t>(port));
  const absl::Status status =
      admin
          .Drain({.run_id = std::nullopt, .node = "node-a", .wait = milliseconds(50)},
                 milliseconds(200))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message(),
            "no answer came within 0.25 s, so its process may be stopped (SIGSTOP) or overloaded, "
            "or its host cut off");
}

// Twice as many callers as may wait, each on a call of its own: half of them are refused at once.
class Crowd {
 public:
  explicit Crowd(uint16_t port)
      : stub_(proto::Rendezvous::NewStub(grpc::CreateChannel(
            "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()))) {}
  ~Crowd() { EndAll(); }

  // False if not exactly half of them are refused, in time.
  bool WaitForNode(const std::string& node) {
    constexpr int kMost = 256;
    for (int i = 0; i < 2 * kMost; ++i) {
      Call& call = calls_.emplace_back();
      call.request.set_node(node);
      call.request.set_wait_ms(600'000);
      stub_->async()->Drain(&call.context, &call.request, &call.reply,
                            [this, &call](const grpc::Status& status) {
                              if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
                                refused_.release();
                              call.end.set_value();
                            });
    }
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (int i = 0; i < kMost; ++i) {
      if (!refused_.try_acquire_until(end)) return false;
    }
    return !refused_.try_acquire();
  }
  // As ^C of `muster drain --wait` does.
  void EndAll() {
    for (Call& call : calls_) call.context.TryCancel();
    for (Call& call : calls_) call.end.get_future().wait();
    calls_.clear();
  }
  // Whether one more caller may wait, once the rendezvous knows who has gone.
  bool HasRoom(const std::string& node) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      grpc::ClientContext context;
      proto::DrainRequest request;
      request.set_node(node);
      request.set_wait_ms(1);
      proto::DrainReply reply;
      const grpc::StatusCode code = stub_->Drain(&context, request, &reply).error_code();
      if (code == grpc::StatusCode::DEADLINE_EXCEEDED) return true;
      EXPECT_EQ(code, grpc::StatusCode::RESOURCE_EXHAUSTED);
    }
    return false;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    proto::DrainRequest request;
    proto::DrainReply reply;
    std::promise<void> end;
  };
  const std::unique_ptr<proto::Rendezvous::Stub> stub_;
  std::counting_semaphore<> refused_{0};
  std::list<Call> calls_;
};

TEST(DrainCall, CallersThatGoMakeRoomForOthers) {
  Pair pair;
  Crowd crowd(pair.server->port());
  ASSERT_TRUE(crowd.WaitForNode("node-b"));
  crowd.EndAll();
  EXPECT_TRUE(crowd.HasRoom("node-b"));
  EXPECT_TRUE(pair.leaves.IsToldToStop()) << "the node leaves all the same";
}

}  // namespace
}  // namespace muster::rendezvous
