#include "rendezvous/server/rendezvous_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "rendezvous/server/first_byte_listener.h"
#include "rendezvous/server/job_keeper.h"
#include "rendezvous/server/job_store.h"
#include "rendezvous/server/rendezvous_loop.h"
#include "rendezvous/server/rendezvous_service.h"
#include "spdlog/spdlog.h"

namespace muster::rendezvous {
namespace {

// Well above the largest legal request (1 MiB of value), so that one that is too large is told so
// by the job, in its words, and not by gRPC.
constexpr int kMaxReceivedBytes = 4 << 20;
constexpr int kMaxSentBytes = 16 << 20;
// Calls of one agent at a time: each of its workers may wait for a few keys.
constexpr int kMaxStreamsPerConnection = 4096;
constexpr int kHandshakeTimeoutMs = 10'000;
// Whoever watches asks for a sign of life every 10 s (rendezvous/client/admin_client.cc).
constexpr int kLeastPingIntervalMs = 1000;
// A caller that is silent is asked for one after this, or after a lease where that is longer, so
// that agents are left to theirs: their heartbeats come first, and it ends first.
constexpr Duration kSilence = std::chrono::seconds(60);
constexpr Duration kSignOfLife = std::chrono::seconds(20);
constexpr auto kShutdownGrace = std::chrono::milliseconds(500);

// Hands sockets over to a gRPC server that owns no port itself.
class GrpcEntrance : public GrpcAcceptor {
 public:
  explicit GrpcEntrance(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor)
      : acceptor_(std::move(acceptor)) {}
  void Accept(int fd) override {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = -1;
    connection.fd = fd;
    acceptor_->HandleNewConnection(&connection);
  }

 private:
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
};

int Milliseconds(Duration duration) {
  return static_cast<int>(std::min<int64_t>(duration / std::chrono::milliseconds(1), INT_MAX));
}

}  // namespace

// In the order of their making; Shutdown() takes them down in reverse.
class RendezvousServer::Parts {
 public:
  std::unique_ptr<FirstByteListener> listener;
  std::unique_ptr<RendezvousLoop> loop;
  std::unique_ptr<grpc::Service> service;
  std::unique_ptr<GrpcEntrance> entrance;
  std::unique_ptr<grpc::Server> server;
  bool is_down = false;
};

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(
    const RendezvousServerOptions& options) {
  auto parts = std::make_unique<Parts>();
  // First: a disk that hangs must not hold the port.
  std::unique_ptr<JobKeeper> keeper;
  if (!options.state_dir.empty()) {
    auto jobs = JobStore::Open(options.state_dir);
    if (!jobs.ok()) return jobs.status();
    keeper = std::make_unique<JobKeeper>(*std::move(jobs));
  }
  auto listener = FirstByteListener::Listen({.host = options.host, .port = options.port});
  if (!listener.ok()) return listener.status();
  parts->listener = *std::move(listener);

  RendezvousLoopOptions loop{.job = options.job,
                             .retention = options.retention,
                             .jobs = std::move(keeper),
                             .on_round = {},
                             .watched_job = options.non_grpc_job,
                             .clock = options.clock};
  if (options.on_round) {
    loop.on_round = [listener = parts->listener.get(), begin = options.on_round] {
      listener->DisownEarlier();
      begin();
    };
  }
  if (options.standalone) loop.job.startup_quiet = Duration(0);
  parts->loop = std::make_unique<RendezvousLoop>(std::move(loop));
  parts->service = NewRendezvousService(parts->loop.get());

  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxReceivedBytes);
  builder.SetMaxSendMessageSize(kMaxSentBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLeastPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             Milliseconds(std::max(kSilence, options.job.lease)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kSignOfLife));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // As in rendezvous/client/channel.cc.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  parts->entrance =
      std::make_unique<GrpcEntrance>(builder.experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
          grpc::InsecureServerCredentials()));
  builder.RegisterService(parts->service.get());
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr) return absl::InternalError("gRPC's server didn't start");

  parts->listener->Start(parts->entrance.get(), options.non_grpc);
  spdlog::info("rendezvous listens on {} port {}",
               options.host.empty() ? "all interfaces" : options.host, parts->listener->port());
  return std::unique_ptr<RendezvousServer>(new RendezvousServer(std::move(parts)));
}

RendezvousServer::RendezvousServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RendezvousServer::~RendezvousServer() { Shutdown(); }

uint16_t RendezvousServer::port() const { return parts_->listener->port(); }

void RendezvousServer::HostStopping(const std::string& reason, int exit_code) {
  parts_->loop->HostStopping(reason, exit_code);
}

void RendezvousServer::HostRefused(const std::string& reason, int exit_code) {
  parts_->loop->HostRefused(reason, exit_code);
}

bool RendezvousServer::WaitUntilIdle(Duration most, Duration linger) {
  return parts_->loop->WaitUntilIdle(most, linger);
}

void RendezvousServer::Shutdown() {
  if (parts_->is_down) return;
  parts_->is_down = true;
  parts_->listener->Stop();
  // Every RPC ends with a reason before gRPC cuts what is left.
  parts_->loop->Stop();
  parts_->server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  parts_->server.reset();
}

}  // namespace muster::rendezvous
