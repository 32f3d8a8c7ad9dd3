// That nothing is left of a stream that has ended, however it ended; what it reports is tested with
// its client.
#include "rendezvous/client/session_stream.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rendezvous/client/channel.h"
#include "rendezvous/client/recording_observer.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

constexpr Duration kPatience = seconds(20);

// Opens every session and reads until the agent has said its last word.
class OpenRendezvous : public proto::Rendezvous::Service {
 public:
  OpenRendezvous() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  uint16_t port() const { return static_cast<uint16_t>(port_); }
  void Shutdown() { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<proto::RendezvousMessage, proto::AgentMessage>* stream) override {
    context->AddInitialMetadata("muster-version", "0");
    stream->SendInitialMetadata();
    proto::AgentMessage message;
    while (stream->Read(&message)) {
    }
    return grpc::Status::OK;
  }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// One stream, and whether anything is left of it.
struct Trial {
  Trial(uint16_t port, Duration connect_timeout) {
    auto target = ResolveTarget("127.0.0.1", port);
    // The stream drops it when it goes.
    auto token = std::shared_ptr<int>(new int, [gone = gone](const int* left) {
      delete left;
      gone->set_value();
    });
    stream = SessionStream::Make(
        {.stub = proto::Rendezvous::NewStub(MakeChannel(*target, connect_timeout)),
         .endpoint = "the endpoint",
         .address = "",
         .connect_timeout = connect_timeout,
         .observer = &observer,
         .on_done = [token] {}});
    stream->Start();
  }
  // Once nobody else refers to it.
  bool IsGone() {
    stream.reset();
    return gone->get_future().wait_for(kPatience) == std::future_status::ready;
  }

  // Shared with what may be left of it.
  const std::shared_ptr<std::promise<void>> gone = std::make_shared<std::promise<void>>();
  RecordingObserver observer;
  std::shared_ptr<SessionStream> stream;
};

TEST(SessionStream, IsGoneWhenNobodyAnswers) {
  uint16_t port = 0;
  {
    OpenRendezvous rendezvous;
    port = rendezvous.port();
    rendezvous.Shutdown();
  }
  Trial trial(port, kPatience);
  EXPECT_TRUE(trial.observer.NextOf<RecordingObserver::Disconnected>().has_value());
  EXPECT_TRUE(trial.IsGone());
}

TEST(SessionStream, IsGoneWhenTheRendezvousIs) {
  OpenRendezvous rendezvous;
  Trial trial(rendezvous.port(), kPatience);
  EXPECT_TRUE(trial.observer.NextOf<RecordingObserver::Connected>().has_value());
  rendezvous.Shutdown();
  EXPECT_TRUE(trial.observer.NextOf<RecordingObserver::Disconnected>().has_value());
  EXPECT_TRUE(trial.IsGone());
}

TEST(SessionStream, IsGoneWhenItWasClosed) {
  OpenRendezvous rendezvous;
  Trial trial(rendezvous.port(), kPatience);
  EXPECT_TRUE(trial.observer.NextOf<RecordingObserver::Connected>().has_value());
  trial.stream->Close();
  trial.stream->Close();
  EXPECT_TRUE(trial.IsGone());
}

TEST(SessionStream, IsGoneWhenItWasDropped) {
  OpenRendezvous rendezvous;
  Trial trial(rendezvous.port(), kPatience);
  trial.stream->Drop();
  EXPECT_TRUE(trial.IsGone());
}

}  // namespace
}  // namespace muster::rendezvous
