#include "launcher/meeting_place.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/shared_store.h"
#include "rendezvous/client/probe.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MeetingPlaceTest : public testing::Test {
 protected:
  std::variant<MeetingPlace, MeetingFailure> Find(const LaunchPlan& plan) {
    MeetingOptions options;
    options.patience = patience_;
    options.is_one_of_hosts = is_one_of_hosts_;
    options.store = store_;
    options.say = [this](const std::string& line) { said_.push_back(line); };
    return FindMeetingPlace(plan, options);
  }

  MeetingPlace Place(const LaunchPlan& plan) {
    auto found = Find(plan);
    auto* failure = std::get_if<MeetingFailure>(&found);
    EXPECT_EQ(failure, nullptr) << failure->text;
    return failure != nullptr ? MeetingPlace() : std::get<MeetingPlace>(std::move(found));
  }

  MeetingFailure Failure(const LaunchPlan& plan) {
    auto found = Find(plan);
    auto* failure = std::get_if<MeetingFailure>(&found);
    EXPECT_NE(failure, nullptr);
    return failure != nullptr ? *failure : MeetingFailure();
  }

  static LaunchPlan Elastic(const std::string& host, uint16_t port) {
    LaunchPlan plan;
    plan.layout = Layout::kElastic;
    plan.terms.max_nodes = 2;
    plan.endpoint = {.host = host, .port = port};
    plan.listen_host = host;
    plan.hosting = Hosting::kByAddress;
    plan.joins_if_port_is_taken = true;
    return plan;
  }

  // A rendezvous on a port of the kernel's choice.
  MeetingPlace Standalone() {
    LaunchPlan plan;
    plan.endpoint = {.host = "127.0.0.1", .port = 0};
    plan.listen_host = "127.0.0.1";
    plan.address = "127.0.0.1";
    return Place(plan);
  }

  Duration patience_{0};
  bool is_one_of_hosts_ = false;
  SharedStore* store_ = nullptr;
  std::vector<std::string> said_;
};

TEST_F(MeetingPlaceTest, StandaloneHostsOnAPortOfItsOwn) {
  MeetingPlace place = Standalone();
  ASSERT_NE(place.server, nullptr);
  EXPECT_NE(place.connect_to.port, 0);
  EXPECT_EQ(place.connect_to.port, place.server->port());
  EXPECT_EQ(place.name, place.connect_to.ToString());
  EXPECT_EQ(place.address, "127.0.0.1");
  EXPECT_THAT(said_, IsEmpty());
}

// Whether PyTorch's store answers there: asked for the number of keys, in 8 bytes.
bool StoreAnswers(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  timeval patience{.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  char answer[8];
  bool is_answered =
      send(fd, "\x06", 1, MSG_NOSIGNAL) == 1 && recv(fd, answer, 8, MSG_WAITALL) == 8;
  close(fd);
  return is_answered;
}

TEST_F(MeetingPlaceTest, PyTorchsStoreSharesThePortWhereThePlanSaysSo) {
  LaunchPlan plan;
  plan.layout = Layout::kStatic;
  plan.endpoint = {.host = "127.0.0.1", .port = 0};
  plan.listen_host = "127.0.0.1";
  plan.address = "127.0.0.1";
  SharedStore store(nullptr);
  store_ = &store;
  for (bool is_shared : {true, false}) {
    plan.shares_port_with_store = is_shared;
    MeetingPlace place = Place(plan);
    const uint16_t port = place.server->port();
    store.BeginRound();
    EXPECT_EQ(StoreAnswers(port), is_shared);
    EXPECT_EQ(rendezvous::Probe("127.0.0.1", port).answer, rendezvous::ProbeAnswer::kMuster);
  }
}

TEST_F(MeetingPlaceTest, TheNodeThatCanBindTheEndpointHosts) {
  uint16_t port = Standalone().connect_to.port;
  MeetingPlace place = Place(Elastic("127.0.0.3", port));
  EXPECT_NE(place.server, nullptr);
  EXPECT_EQ(place.address, "127.0.0.3");
  EXPECT_EQ(place.connect_to, (Endpoint{"127.0.0.3", port}));
}

TEST_F(MeetingPlaceTest, LocalhostIsAdvertisedInDigits) {
  uint16_t port = Standalone().connect_to.port;
  MeetingPlace place = Place(Elastic("localhost", port));
  EXPECT_NE(place.server, nullptr);
  EXPECT_EQ(place.address, "127.0.0.1");
}

TEST_F(MeetingPlaceTest, AnotherAddressIsJoined) {
  LaunchPlan plan = Elastic("192.0.2.1", 29400);
  plan.address = "10.0.0.9";
  MeetingPlace place = Place(plan);
  EXPECT_EQ(place.server, nullptr);
  EXPECT_EQ(place.address, "10.0.0.9");
  EXPECT_EQ(place.name, "192.0.2.1:29400");
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(said_[0], HasSubstr("192.0.2.1 is no address of this node"));
}

TEST_F(MeetingPlaceTest, ARendezvousThatHasThePortIsJoined) {
  MeetingPlace first = Standalone();
  MeetingPlace second = Place(Elastic("127.0.0.1", first.connect_to.port));
  EXPECT_EQ(second.server, nullptr);
  EXPECT_EQ(second.connect_to, first.connect_to);
  EXPECT_EQ(second.address, "127.0.0.1");
}

TEST_F(MeetingPlaceTest, ARendezvousOfAnotherJobIsNotJoined) {
  MeetingPlace first = Standalone();
  LaunchPlan plan;
  plan.layout = Layout::kStatic;
  plan.endpoint = first.connect_to;
  plan.listen_host = "127.0.0.1";
  MeetingFailure failure = Failure(plan);
  EXPECT_EQ(failure.exit_code, 69);
  EXPECT_THAT(failure.text, HasSubstr("port " + std::to_string(first.connect_to.port)));
  EXPECT_THAT(failure.text, HasSubstr("process " + std::to_string(getpid())));
  EXPECT_THAT(failure.text, HasSubstr("--master-port"));
}

// Listens on a port of its own; its kernel accepts, and it says `answer` to each, or nothing.
class Holder {
 public:
  explicit Holder(std::string answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, raw, size) != 0 || listen(listener_, 64) != 0 ||
        getsockname(listener_, raw, &size) != 0) {
      return;
    }
    port = ntohs(address.sin_port);
    if (!answer_.empty()) thread_ = std::thread([this] { Answer(); });
  }
  ~Holder() {
    shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(listener_);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  uint16_t port = 0;

 private:
  void Answer() const {
    for (int fd = accept(listener_, nullptr, nullptr); fd >= 0;
         fd = accept(listener_, nullptr, nullptr)) {
      send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      shutdown(fd, SHUT_WR);
      char rest[256];
      while (recv(fd, rest, sizeof(rest), 0) > 0) continue;
      close(fd);
    }
  }

  const std::string answer_;
  int listener_ = -1;
  std::thread thread_;
};

TEST_F(MeetingPlaceTest, AnythingElseThatAnswersAtThePortIsNamedAtOnce) {
  patience_ = std::chrono::hours(1);
  Holder holder("SSH-2.0-OpenSSH_9.2p1\r\n");
  ASSERT_NE(holder.port, 0);
  MeetingFailure failure = Failure(Elastic("127.0.0.1", holder.port));
  EXPECT_EQ(failure.exit_code, 69);
  EXPECT_THAT(failure.text, HasSubstr("no muster rendezvous"));
  EXPECT_THAT(failure.text, HasSubstr("doesn't speak gRPC"));
  EXPECT_THAT(failure.text, HasSubstr("--rdzv-endpoint"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(MeetingPlaceTest, AHolderThatSaysNothingIsWaitedForThenNamed) {
  patience_ = std::chrono::milliseconds(10);
  Holder holder("");
  ASSERT_NE(holder.port, 0);
  MeetingFailure failure = Failure(Elastic("127.0.0.1", holder.port));
  EXPECT_EQ(failure.exit_code, 69);
  EXPECT_THAT(failure.text, HasSubstr("port " + std::to_string(holder.port)));
  EXPECT_THAT(failure.text, HasSubstr("--rdzv-endpoint"));
}

TEST_F(MeetingPlaceTest, WaitingForASilentHolderIsSaidOnce) {
  patience_ = std::chrono::seconds(4);
  Holder holder("");
  ASSERT_NE(holder.port, 0);
  Failure(Elastic("127.0.0.1", holder.port));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(said_[0], HasSubstr("process " + std::to_string(getpid())));
  EXPECT_THAT(said_[0], HasSubstr("doesn't answer yet; waiting for it for 4 s (join_timeout)"));
}

TEST_F(MeetingPlaceTest, ANodeRankZeroThatCannotResolveTheMasterAddressIsTold) {
  patience_ = std::chrono::milliseconds(10);
  for (int nodes : {1, 2}) {
    LaunchPlan plan;
    plan.layout = Layout::kStatic;
    plan.terms.max_nodes = nodes;
    plan.endpoint = {.host = "no-such-host.invalid", .port = 29500};
    plan.address = "127.0.0.1";
    MeetingFailure failure = Failure(plan);
    EXPECT_EQ(failure.exit_code, 69);
    EXPECT_THAT(failure.text, HasSubstr("--master-addr=no-such-host.invalid"));
    EXPECT_THAT(failure.text, HasSubstr("does not resolve"));
  }
}

TEST_F(MeetingPlaceTest, ALoopbackAddressIsRefusedWhereTheRendezvousIsElsewhere) {
  LaunchPlan plan = Elastic("192.0.2.1", 29400);
  plan.hosting = Hosting::kNever;
  plan.address = "127.0.0.5";
  MeetingFailure failure = Failure(plan);
  EXPECT_EQ(failure.exit_code, 64);
  EXPECT_THAT(failure.text, HasSubstr("--local-addr=127.0.0.5"));
  plan.endpoint.host = "127.0.0.1";
  EXPECT_EQ(Place(plan).address, "127.0.0.5");
}

TEST_F(MeetingPlaceTest, ANameThatStandsForLoopbackIsToldWithWhatHelps) {
  for (bool is_one_of_hosts : {false, true}) {
    SCOPED_TRACE(is_one_of_hosts);
    is_one_of_hosts_ = is_one_of_hosts;
    said_.clear();
    // Another way to write 127.0.0.1.
    LaunchPlan plan = Elastic("127.1", 0);
    plan.hosting = Hosting::kAlways;
    plan.terms.max_nodes = 2;
    Place(plan);
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_THAT(said_[0], HasSubstr(is_one_of_hosts ? "(--master-addr names another address)"
                                                    : "(--local-addr names another address)"));
  }
}

TEST_F(MeetingPlaceTest, AnAddressThatNobodyGaveIsLookedUpAgain) {
  LaunchPlan plan = Elastic("127.0.0.1", 29400);
  plan.hosting = Hosting::kNever;
  MeetingPlace place = Place(plan);
  ASSERT_TRUE(place.find_address);
  EXPECT_EQ(place.find_address(), "127.0.0.1");
  plan.address = "127.0.0.5";
  EXPECT_FALSE(Place(plan).find_address);
}

TEST_F(MeetingPlaceTest, ANameThatDoesNotResolveIsTriedAgainThenNamed) {
  patience_ = std::chrono::milliseconds(300);
  MeetingFailure failure = Failure(Elastic("no-such-host.invalid", 29400));
  EXPECT_EQ(failure.exit_code, 69);
  EXPECT_THAT(failure.text, HasSubstr("\"no-such-host.invalid\" does not resolve"));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(said_[0], HasSubstr("trying again"));
}

TEST_F(MeetingPlaceTest, SoItIsWhereThisNodeNeverHostsAndItsAddressIsGiven) {
  LaunchPlan plan = Elastic("nosuch.invalid", 29400);
  plan.hosting = Hosting::kNever;
  plan.address = "10.0.0.1";
  patience_ = std::chrono::milliseconds(300);
  MeetingFailure failure = Failure(plan);
  EXPECT_EQ(failure.exit_code, 69);
  EXPECT_THAT(failure.text, HasSubstr("\"nosuch.invalid\" does not resolve"));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("trying again for 1 s (join_timeout)")));
}

TEST_F(MeetingPlaceTest, AnAddressOfAnotherMachineCannotBeHosted) {
  LaunchPlan plan = Elastic("192.0.2.1", 29400);
  plan.hosting = Hosting::kAlways;
  MeetingFailure failure = Failure(plan);
  EXPECT_EQ(failure.exit_code, 64);
  EXPECT_THAT(failure.text, HasSubstr("192.0.2.1:29400"));
}

TEST_F(MeetingPlaceTest, NodeRankZeroHostsOnAllInterfaces) {
  uint16_t port = Standalone().connect_to.port;
  LaunchPlan plan;
  plan.layout = Layout::kStatic;
  plan.terms.max_nodes = 2;
  plan.endpoint = {.host = "127.0.0.1", .port = port};
  plan.listen_host = "";
  plan.joins_if_port_is_taken = true;
  plan.address = "127.0.0.1";
  MeetingPlace place = Place(plan);
  EXPECT_NE(place.server, nullptr);
  EXPECT_EQ(place.connect_to, (Endpoint{"127.0.0.1", port}));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(MeetingPlaceTest, NodeRankZeroSaysThatTheMasterAddressIsNotItsOwn) {
  uint16_t port = Standalone().connect_to.port;
  LaunchPlan plan;
  plan.layout = Layout::kStatic;
  plan.terms.max_nodes = 2;
  plan.endpoint = {.host = "192.0.2.1", .port = port};
  plan.listen_host = "";
  plan.joins_if_port_is_taken = true;
  plan.address = "192.0.2.1";
  MeetingPlace place = Place(plan);
  EXPECT_NE(place.server, nullptr);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(said_[0], HasSubstr("--master-addr=192.0.2.1"));
}

}  // namespace
}  // namespace muster::launcher
