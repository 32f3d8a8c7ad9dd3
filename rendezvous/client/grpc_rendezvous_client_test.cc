// How the client and the probe take what they may meet at an endpoint; what a good rendezvous says
// to them is in rendezvous/server/rendezvous_server_test.cc.
#include "rendezvous/client/grpc_rendezvous_client.h"

#include <arpa/inet.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "proto/rendezvous.grpc.pb.h"
#include "proto/session_convert.h"
#include "rendezvous/client/probe.h"
#include "rendezvous/client/recording_observer.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

// Listens on a free port and answers each connection with `answer`, then closes it; with an empty
// answer it says nothing and keeps the connection.
class RawServer {
 public:
  explicit RawServer(std::string answer) : answer_(std::move(answer)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~RawServer() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  uint16_t port() const { return port_; }

 private:
  void Run() {
    std::vector<int> kept;
    for (int fd = accept(fd_, nullptr, nullptr); fd >= 0; fd = accept(fd_, nullptr, nullptr)) {
      char request[256];
      if (!answer_.empty() && recv(fd, request, sizeof(request), 0) > 0)
        send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      kept.push_back(fd);
      if (!answer_.empty()) shutdown(fd, SHUT_WR);
    }
    for (int fd : kept) close(fd);
  }
  const std::string answer_;
  int fd_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

// A port at which nobody listens.
uint16_t DeadPort() { return RawServer("x").port(); }

// Why a first connection attempt fails.
absl::Status WhyNot(const std::string& host, uint16_t port,
                    Duration connect_timeout = seconds(20)) {
  RecordingObserver observer;
  auto client = NewGrpcRendezvousClient(
      {.host = host, .port = port, .connect_timeout = connect_timeout}, &observer);
  const uint64_t connection = client->Connect();
  auto event = observer.Next(seconds(60));
  if (!event) return absl::InternalError("nothing was reported");
  auto* gone = std::get_if<RecordingObserver::Disconnected>(&*event);
  if (gone == nullptr) return absl::OkStatus();
  EXPECT_EQ(gone->connection, connection);
  EXPECT_FALSE(observer.Next(Duration(0)).has_value()) << "reported more than once";
  return gone->why;
}

bool Says(const absl::Status& status, const std::string& words) {
  return status.message().find(words) != std::string::npos;
}

TEST(GrpcRendezvousClient, NobodyThereIsConnectionRefused) {
  const uint16_t port = DeadPort();
  absl::Status why = WhyNot("127.0.0.1", port);
  EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable) << why;
  EXPECT_TRUE(Says(why, "connection refused")) << why;
  EXPECT_TRUE(Says(why, std::to_string(port))) << why;
  EXPECT_EQ(Probe("127.0.0.1", port, seconds(20)).answer, ProbeAnswer::kNobody);
}

TEST(GrpcRendezvousClient, ANameThatDoesntResolveIsTheCallersMistake) {
  absl::Status why = WhyNot("no.such.host.invalid.", 29400);
  // A resolver that can't be reached (as in a sandbox) can't know the name: worth another try.
  EXPECT_TRUE(why.code() == absl::StatusCode::kInvalidArgument ||
              why.code() == absl::StatusCode::kUnavailable)
      << why;
  EXPECT_TRUE(Says(why, "doesn't resolve")) << why;
  EXPECT_TRUE(Says(why, "no.such.host.invalid.")) << why;
}

TEST(GrpcRendezvousClient, WhatIsNotGrpcIsNamedSo) {
  for (const char* answer : {"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
                             "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"}) {
    RawServer server(answer);
    absl::Status why = WhyNot("127.0.0.1", server.port());
    EXPECT_EQ(why.code(), absl::StatusCode::kInternal) << answer << why;
    EXPECT_TRUE(Says(why, "doesn't speak gRPC")) << why;
    EXPECT_EQ(Probe("127.0.0.1", server.port(), seconds(20)).answer, ProbeAnswer::kSomethingElse);
  }
}

TEST(GrpcRendezvousClient, OneThatSaysNothingIsGivenUpOn) {
  RawServer server("");
  const auto begin = SteadyClock::now();
  absl::Status why = WhyNot("127.0.0.1", server.port(), milliseconds(200));
  EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable) << why;
  EXPECT_TRUE(Says(why, "doesn't answer")) << why;
  EXPECT_GE(SteadyClock::now() - begin, milliseconds(190));
  // It may be a rendezvous that stands still.
  EXPECT_EQ(Probe("127.0.0.1", server.port(), milliseconds(200)).answer, ProbeAnswer::kSilent);
}

TEST(GrpcRendezvousClient, AnotherGrpcServerIsNamedSo) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  grpc::CallbackGenericService everything;  // answers Unimplemented
  builder.RegisterCallbackGenericService(&everything);
  auto server = builder.BuildAndStart();
  absl::Status why = WhyNot("127.0.0.1", static_cast<uint16_t>(port));
  EXPECT_EQ(why.code(), absl::StatusCode::kUnimplemented) << why;
  EXPECT_TRUE(Says(why, "another gRPC server")) << why;
  EXPECT_EQ(Probe("127.0.0.1", static_cast<uint16_t>(port), seconds(20)).answer,
            ProbeAnswer::kSomethingElse);
}

// Says hello, then whatever the test wants.
class OddRendezvous : public proto::Rendezvous::Service {
 public:
  explicit OddRendezvous(proto::RendezvousMessage answer) : answer_(std::move(answer)) {}
  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<proto::RendezvousMessage, proto::AgentMessage>* stream) override {
    context->AddInitialMetadata("muster-version", "0");
    stream->SendInitialMetadata();
    stream->Write(answer_);
    proto::AgentMessage message;
    while (stream->Read(&message)) ++read_;
    return grpc::Status::OK;
  }
  int read() const { return read_; }

 private:
  const proto::RendezvousMessage answer_;
  std::atomic<int> read_{0};
};

struct OddServer {
  explicit OddServer(proto::RendezvousMessage answer) : service(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
  }
  OddRendezvous service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

TEST(GrpcRendezvousClient, AMalformedMessageEndsTheSession) {
  OddServer odd{proto::RendezvousMessage()};
  RecordingObserver observer;
  auto client = NewGrpcRendezvousClient(
      {.host = "127.0.0.1", .port = static_cast<uint16_t>(odd.port)}, &observer);
  client->Connect();
  ASSERT_TRUE(observer.NextOf<RecordingObserver::Connected>().has_value());
  auto gone = observer.NextOf<RecordingObserver::Disconnected>();
  ASSERT_TRUE(gone.has_value());
  EXPECT_EQ(gone->why.code(), absl::StatusCode::kInternal) << gone->why;
}

TEST(GrpcRendezvousClient, DisconnectDeliversWhatWasSentAndReportsNothing) {
  OddServer odd{ToProto(RendezvousMessage(Notice{"hello"}))};
  RecordingObserver observer;
  auto client = NewGrpcRendezvousClient(
      {.host = "127.0.0.1", .port = static_cast<uint16_t>(odd.port)}, &observer);
  client->Send(Heartbeat{1});  // no stream: dropped
  client->Connect();
  ASSERT_TRUE(observer.NextOf<RecordingObserver::Connected>().has_value());
  ASSERT_TRUE(observer.NextMessage<Notice>().has_value());
  for (uint64_t n = 0; n < 100; ++n) client->Send(Heartbeat{n});
  client->Send(Leave{"done"});
  client->Disconnect();
  client->Send(Heartbeat{1});  // dropped
  client.reset();
  odd.server->Shutdown();
  EXPECT_EQ(odd.service.read(), 101);
  EXPECT_FALSE(observer.Next(Duration(0)).has_value());
}

TEST(GrpcRendezvousClient, TheEndOfAClientWaitsForNobody) {
  RawServer silent("");
  for (const char* host : {"127.0.0.1", "localhost", "no.such.host.invalid."}) {
    RecordingObserver observer;
    auto client = NewGrpcRendezvousClient({.host = host, .port = silent.port()}, &observer);
    client->Connect();
    bool answered = false;
    client->GetKey({}, "key", seconds(60),
                   [&](const absl::StatusOr<std::string>& answer) { answered = !answer.ok(); });
    const auto begin = SteadyClock::now();
    client.reset();
    EXPECT_TRUE(answered) << host;
    // 200 ms on an idle machine.
    EXPECT_LT(SteadyClock::now() - begin, seconds(2)) << host;
  }
}

TEST(GrpcRendezvousClient, ConnectTriesAtOnceHoweverOftenItFailed) {
  const uint16_t port = DeadPort();
  RecordingObserver observer;
  auto client = NewGrpcRendezvousClient({.host = "127.0.0.1", .port = port}, &observer);
  // gRPC's own backoff would have grown to many seconds by now.
  const auto begin = SteadyClock::now();
  for (int i = 0; i < 20; ++i) {
    const uint64_t connection = client->Connect();
    auto gone = observer.NextOf<RecordingObserver::Disconnected>();
    ASSERT_TRUE(gone.has_value());
    EXPECT_EQ(gone->connection, connection);
  }
  EXPECT_LT(SteadyClock::now() - begin, seconds(10));
}

TEST(GrpcRendezvousClient, CallsWithoutAConnectionAreUnavailable) {
  RecordingObserver observer;
  auto client = NewGrpcRendezvousClient({.host = "127.0.0.1", .port = 1}, &observer);
  absl::Status seen;
  client->SetKey({}, "key", "value", [&](absl::Status status) { seen = std::move(status); });
  EXPECT_EQ(seen.code(), absl::StatusCode::kUnavailable);
  client->SetKey({}, "key", std::string((1 << 20) + 1, 'x'),
                 [&](absl::Status status) { seen = std::move(status); });
  EXPECT_EQ(seen.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::rendezvous
