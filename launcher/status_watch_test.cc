#include "launcher/status_watch.h"

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "base/entropy.h"
#include "base/mutex.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "rendezvous/client/recording_observer.h"
#include "rendezvous/server/rendezvous_server.h"

namespace muster::launcher {
namespace {

using rendezvous::RecordingObserver;
using rendezvous::RendezvousServer;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<RendezvousServer> StartServer(uint16_t port = 0) {
  auto server = RendezvousServer::Start(
      {.host = "127.0.0.1", .port = port, .job = {.lease = seconds(60)}, .standalone = true});
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

// One agent of a job of two nodes, which waits.
class WaitingAgent {
 public:
  explicit WaitingAgent(uint16_t port)
      : client_(
            rendezvous::NewGrpcRendezvousClient({.host = "127.0.0.1", .port = port}, &observer_)) {
    client_->Connect();
    EXPECT_TRUE(observer_.NextOf<RecordingObserver::Connected>().has_value());
    Attach attach;
    attach.incarnation = base::FreshId<Incarnation>();
    attach.node_name = "node-a";
    attach.address = "127.0.0.1";
    attach.terms.run_id = "job";
    attach.terms.min_nodes = attach.terms.max_nodes = 2;
    attach.terms.version = kVersion;
    client_->Send(attach);
    EXPECT_TRUE(observer_.NextMessage<Attached>().has_value());
  }

 private:
  RecordingObserver observer_;
  std::unique_ptr<rendezvous::RendezvousClient> client_;
};

class StatusWatchTest : public testing::Test {
 protected:
  StatusWatchTest() : server_(StartServer()), port_(server_->port()) {}

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }

  std::future<absl::Status> Watch(Duration patience, std::optional<std::string> run_id = {}) {
    auto take = [this](std::string_view text) {
      base::MutexLock lock(mutex_);
      seen_ += text;
      seen_ += '\n';
      changed_.notify_all();
      return true;
    };
    watch_ = std::make_unique<StatusWatch>(
        StatusWatchOptions{.endpoint = {.host = "127.0.0.1", .port = port_},
                           .run_id = std::move(run_id),
                           .patience = patience,
                           .say =
                               [this, take](std::string_view text) {
                                 take(text);
                                 if (on_said_) on_said_(text);
                               },
                           .print = take});
    return std::async(std::launch::async, [this] { return watch_->Run(); });
  }
  void DrainNodeA() {
    auto told = rendezvous::AdminClient("127.0.0.1", port_)
                    .Drain({.run_id = "job", .node = "node-a"}, seconds(20));
    EXPECT_EQ(told.value_or(rendezvous::DrainReport()).agents, 1) << told.status();
  }
  bool IsSeen(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    base::MutexLock lock(mutex_);
    while (seen_.find(text) == std::string::npos) {
      if (changed_.wait_until(mutex_, end) == std::cv_status::timeout) {
        ADD_FAILURE() << "not seen: " << text << "; but: " << seen_;
        return false;
      }
    }
    return true;
  }

  std::unique_ptr<RendezvousServer> server_;
  const uint16_t port_;
  base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::string seen_ MUSTER_GUARDED_BY(mutex_);
  // Called by the watch after each line for the user.
  std::function<void(std::string_view)> on_said_;
  std::unique_ptr<StatusWatch> watch_;
};

TEST_F(StatusWatchTest, GoesOnOverARestart) {
  auto agent = std::make_unique<WaitingAgent>(port_);
  auto end = Watch(seconds(60));
  ASSERT_TRUE(IsSeen("node-a"));
  server_->Shutdown();
  server_.reset();
  ASSERT_TRUE(
      IsSeen("lost the rendezvous at " + endpoint() + "; trying to reach it again for 60 s\n"));
  server_ = StartServer(port_);
  ASSERT_TRUE(IsSeen("reached the rendezvous at " + endpoint() + " again\nno jobs\n"));
  agent = std::make_unique<WaitingAgent>(port_);
  EXPECT_TRUE(IsSeen("job: job job: node node-a joined"));
  server_->HostStopping("stopped by SIGTERM", 143);
  ASSERT_TRUE(IsSeen("job: job job: failed: stopped by SIGTERM"));
  server_->Shutdown();
  const absl::Status status = end.get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(IsSeen("the rendezvous at " + endpoint() + " has ended, and what it did is over\n"));
}

TEST_F(StatusWatchTest, GivesUpOnOneThatDoesNotComeBack) {
  WaitingAgent agent(port_);
  auto end = Watch(milliseconds(600));
  ASSERT_TRUE(IsSeen("node-a"));
  server_->Shutdown();
  const absl::Status status = end.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message(),
            "the rendezvous at " + endpoint() +
                " hasn't come back within 1 s: if its job has ended, the output of the job's nodes "
                "tells how; else start the rendezvous again there, and watch it anew");
}

TEST_F(StatusWatchTest, AJobThatDoesNotComeBackIsSaid) {
  WaitingAgent agent(port_);
  auto end = Watch(seconds(3), "job");
  ASSERT_TRUE(IsSeen("node-a"));
  server_->Shutdown();
  server_.reset();
  ASSERT_TRUE(IsSeen("lost the rendezvous at " + endpoint()));
  server_ = StartServer(port_);
  const absl::Status status = end.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_EQ(status.message(), "the rendezvous at " + endpoint() +
                                  " is back, but job \"job\" hasn't come back to it within 3 s: it "
                                  "has ended, or lost its nodes; their own output tells");
}

TEST_F(StatusWatchTest, AJobThatAllHaveLeftBeforeItBeganIsOver) {
  WaitingAgent agent(port_);
  auto end = Watch(seconds(60));
  ASSERT_TRUE(IsSeen("node-a"));
  DrainNodeA();
  ASSERT_TRUE(IsSeen("job: job job: node node-a is let go: drained"));
  server_->Shutdown();
  const absl::Status status = end.get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(IsSeen("the rendezvous at " + endpoint() + " has ended, and what it did is over\n"));
}

TEST_F(StatusWatchTest, AJobThatComesAgainAfterThatIsNot) {
  auto agent = std::make_unique<WaitingAgent>(port_);
  auto end = Watch(milliseconds(600));
  ASSERT_TRUE(IsSeen("node-a"));
  DrainNodeA();
  ASSERT_TRUE(IsSeen("job: job job: node node-a is let go: drained"));
  agent = std::make_unique<WaitingAgent>(port_);
  ASSERT_TRUE(IsSeen("job: job job: node node-a joined"));
  server_->Shutdown();
  EXPECT_EQ(end.get().code(), absl::StatusCode::kUnavailable);
}

TEST_F(StatusWatchTest, WhatHappensBeforeItWatchesAgainIsOnThePage) {
  auto agent = std::make_unique<WaitingAgent>(port_);
  auto end = Watch(seconds(60));
  ASSERT_TRUE(IsSeen("node-a"));
  // While the watch has found the rendezvous, but doesn't listen to it yet.
  on_said_ = [&](std::string_view text) {
    if (text.ends_with(" again")) agent = std::make_unique<WaitingAgent>(port_);
  };
  server_->Shutdown();
  server_.reset();
  ASSERT_TRUE(IsSeen("lost the rendezvous at " + endpoint()));
  server_ = StartServer(port_);
  ASSERT_TRUE(IsSeen("reached the rendezvous at " + endpoint() + " again\nJOB "));
  server_->HostStopping("stopped by SIGTERM", 143);
  ASSERT_TRUE(IsSeen("job: job job: failed: stopped by SIGTERM"));
  server_->Shutdown();
  EXPECT_TRUE(end.get().ok());
}

}  // namespace
}  // namespace muster::launcher
