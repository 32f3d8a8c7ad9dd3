#include "rendezvous/client/fake_rendezvous_client.h"

#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

// Writes down what it hears.
class Diary : public SessionObserver {
 public:
  void OnConnected(uint64_t connection) override {
    lines.push_back("connected " + std::to_string(connection));
  }
  void OnMessage(uint64_t connection, RendezvousMessage message) override {
    lines.push_back("message " + std::to_string(connection) + " " + std::get<Notice>(message).text);
  }
  void OnDisconnected(uint64_t connection, absl::Status why) override {
    lines.push_back("disconnected " + std::to_string(connection) + " " +
                    std::string(why.message()));
  }
  std::vector<std::string> lines;
};

using Lines = std::vector<std::string>;

TEST(FakeRendezvousClient, CarriesMessagesBothWaysWhileOpen) {
  Diary diary;
  FakeRendezvousClient client(&diary);
  client.Send(Heartbeat{1});  // no stream yet: dropped
  EXPECT_EQ(client.Connect(), 1u);
  client.Send(Heartbeat{2});
  client.Deliver(Notice{"hello"});
  client.Break(absl::UnavailableError("broke"));
  client.Send(Heartbeat{3});
  client.Deliver(Notice{"dropped"});
  EXPECT_TRUE(client.NextSent() == AgentMessage(Heartbeat{2}));
  EXPECT_EQ(client.NextSent(Duration(0)), std::nullopt);
  EXPECT_EQ(diary.lines, (Lines{"connected 1", "message 1 hello", "disconnected 1 broke"}));
}

TEST(FakeRendezvousClient, RefusesUntilTheTestAccepts) {
  Diary diary;
  FakeRendezvousClient client(&diary, /*accepts_connections=*/false);
  client.Connect();
  client.Break(absl::UnavailableError("connection refused"));
  client.Connect();
  EXPECT_TRUE(client.WaitForConnects(2));
  EXPECT_FALSE(client.WaitForConnects(3, Duration(0)));
  EXPECT_FALSE(client.is_open());
  client.Accept();
  EXPECT_TRUE(client.is_open());
  client.Disconnect();
  client.Break(absl::UnavailableError("said to nobody"));
  EXPECT_EQ(diary.lines, (Lines{"disconnected 1 connection refused", "connected 2"}));
}

TEST(FakeRendezvousClient, WaitsForKeys) {
  Diary diary;
  std::vector<std::string> answers;
  auto note = [&](absl::StatusOr<std::string> a) {
    answers.push_back(a.ok() ? *a : std::string(a.status().message()));
  };
  {
    FakeRendezvousClient client(&diary);
    client.GetKey({}, "k", Duration(0), note);
    client.GetKey({}, "k", std::chrono::seconds(1), note);
    client.SetKey({}, "k", "v", [](const absl::Status& s) { EXPECT_TRUE(s.ok()); });
    client.GetKey({}, "k", Duration(0), note);
    client.GetKey({}, "other", std::chrono::seconds(1), note);
    client.EndWaits(absl::AbortedError("the round is over"));
    client.GetKey({}, "other", std::chrono::seconds(1), note);
    EXPECT_EQ(client.keys().at("k"), "v");
  }
  EXPECT_EQ(answers, (Lines{"the key isn't set", "v", "v", "the round is over", "closed"}));
}

}  // namespace
}  // namespace muster::rendezvous
