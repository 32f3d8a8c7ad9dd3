#include "launcher/failed_start.h"

#include <memory>
#include <string>

#include "base/entropy.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "rendezvous/client/recording_observer.h"
#include "rendezvous/server/rendezvous_server.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FailedStartTest : public testing::Test {
 protected:
  FailedStartTest() {
    auto server = rendezvous::RendezvousServer::Start(
        {.host = "127.0.0.1", .job = {.lease = seconds(60)}, .standalone = true});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    plan_.layout = Layout::kElastic;
    plan_.hosting = Hosting::kByAddress;
    plan_.endpoint = {.host = "127.0.0.1", .port = server_->port()};
    plan_.terms.run_id = "job";
    plan_.terms.min_nodes = plan_.terms.max_nodes = 2;
  }

  bool Tell(Duration patience = milliseconds(300)) {
    return TellOthers(plan_, {.node_name = "node-b",
                              .reason = "the program \"x\" does not exist; check the path",
                              .patience = patience,
                              .say = [this](const std::string& line) { said_ += line; }});
  }

  std::unique_ptr<rendezvous::RendezvousServer> server_;
  LaunchPlan plan_;
  std::string said_;
};

TEST_F(FailedStartTest, WhoWaitsIsToldWhyTheOtherDoesNotCome) {
  rendezvous::RecordingObserver observer;
  auto client = rendezvous::NewGrpcRendezvousClient({.host = "127.0.0.1", .port = server_->port()},
                                                    &observer);
  client->Connect();
  ASSERT_TRUE(observer.NextOf<rendezvous::RecordingObserver::Connected>().has_value());
  Attach attach;
  attach.incarnation = base::FreshId<Incarnation>();
  attach.node_name = "node-a";
  attach.address = "127.0.0.1";
  attach.terms = plan_.terms;
  attach.terms.version = kVersion;
  client->Send(attach);
  auto waiting = observer.NextMessage<Notice>();
  ASSERT_TRUE(waiting.has_value());
  EXPECT_EQ(waiting->text, "waiting for 1 more node (1 of 2 nodes is here)");
  EXPECT_TRUE(Tell(seconds(20)));
  EXPECT_EQ(said_, "");
  auto told = observer.NextMessage<Notice>();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->text,
            "waiting for 1 more node (1 of 2 nodes is here); node node-b could not start: the "
            "program \"x\" does not exist; check the path");
}

TEST_F(FailedStartTest, AJobThatIsNotThereYetIsWaitedForAndTheUserKnows) {
  EXPECT_FALSE(Tell());
  EXPECT_EQ(said_, "telling the other nodes of job job at " + plan_.endpoint.ToString() +
                       ", for at most 1 s");
}

TEST_F(FailedStartTest, WhereThisNodeWouldHaveHostedNobodyIsWaitedFor) {
  server_->Shutdown();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(Tell(seconds(60)));
  EXPECT_EQ(said_, "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
}

TEST_F(FailedStartTest, AJobOfOneNodeHasNobodyToTell) {
  plan_.terms.min_nodes = plan_.terms.max_nodes = 1;
  EXPECT_FALSE(Tell(seconds(60)));
  EXPECT_EQ(said_, "");
}

}  // namespace
}  // namespace muster::launcher
