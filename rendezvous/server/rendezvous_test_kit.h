// A rendezvous on the loopback and as much of an agent as it sees, for tests.
// Not thread-safe.
#ifndef MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_TEST_KIT_H_
#define MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_TEST_KIT_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/entropy.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "rendezvous/client/recording_observer.h"
#include "rendezvous/server/rendezvous_server.h"

namespace muster::rendezvous {

inline JobTerms Terms(int min_nodes, int max_nodes) {
  JobTerms terms;
  terms.run_id = "job";
  terms.min_nodes = min_nodes;
  terms.max_nodes = max_nodes;
  terms.max_restarts = 3;
  terms.last_call_timeout = std::chrono::milliseconds(100);
  terms.version = kVersion;
  return terms;
}

inline std::unique_ptr<RendezvousServer> StartServer(RendezvousServerOptions options = {}) {
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

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_TEST_KIT_H_
