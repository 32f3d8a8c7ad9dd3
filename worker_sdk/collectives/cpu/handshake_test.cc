#include "worker_sdk/collectives/cpu/handshake.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "worker_sdk/collectives/cpu/group_rig.h"
#include "worker_sdk/collectives/cpu/handshake_session.h"
#include "worker_sdk/collectives/cpu/mesh.h"
#include "worker_sdk/collectives/cpu/siphash.h"
#include "worker_sdk/collectives/cpu/socket.h"

namespace muster::cpu {
namespace {

using std::chrono::milliseconds;

Opening SomeOpening() {
  Opening opening;
  opening.world.round = RoundId(3);
  opening.world.id.bytes.fill(1);
  opening.rank = 2;
  opening.world_size = 5;
  opening.group = 77;
  opening.nonce.fill(9);
  return opening;
}

TEST(SipHash, HasTheValuesOfItsAuthors) {
  // Key 00 01 .. 0f, messages of 0, 1 and 15 bytes 00 01 ..: the paper's appendix and vectors.
  std::array<uint8_t, 16> key{};
  std::array<uint8_t, 15> message{};
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < message.size(); ++i) message[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(SipHash24(key, {}), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(SipHash24(key, std::span(message).first(1)), 0x74f839c593dc67fdu);
  EXPECT_EQ(SipHash24(key, message), 0xa129ca6149be45e5u);
}

TEST(Handshake, AnOpeningSurvivesARoundTripAndDamageIsSeen) {
  Opening opening = SomeOpening();
  OpeningBytes bytes = EncodeOpening(opening);
  EXPECT_EQ(DecodeOpening(bytes), opening);
  for (size_t at : {size_t{0}, size_t{7}, size_t{64}, size_t{79}}) {
    OpeningBytes damaged = bytes;
    damaged[at] ^= 1;
    EXPECT_EQ(DecodeOpening(damaged), std::nullopt) << at;
  }
}

TEST(Handshake, ObjectsToEverythingOfAnotherWorld) {
  const std::vector<std::pair<std::string, std::function<void(Opening&)>>> cases = {
      {"", [](Opening& o) { o.rank = 3; }},
      {"another world", [](Opening& o) { o.world.id.bytes[15] = 2; }},
      {"round 4 instead of 3", [](Opening& o) { o.world.round = RoundId(4); }},
      {"another world size", [](Opening& o) { o.world_size = 6; }},
      {"another group", [](Opening& o) { o.group = 78; }},
      {"rank 2", [](Opening&) {}},
      {"rank 5", [](Opening& o) { o.rank = 5; }},
      {"rank -1", [](Opening& o) { o.rank = -1; }},
  };
  for (const auto& [objection, change] : cases) {
    Opening theirs = SomeOpening();
    if (objection.empty() || objection.rfind("rank", 0) != 0) theirs.rank = 1;
    change(theirs);
    EXPECT_EQ(ObjectionTo(theirs, SomeOpening()), objection);
  }
}

TEST(Handshake, AProofDependsOnKeyRoleAndBothOpenings) {
  RoundKey key;
  key.bytes.fill(5);
  OpeningBytes a = EncodeOpening(SomeOpening()), b = a;
  b[50] ^= 1;
  ProofBytes proof = MakeProof(key, Role::kConnector, a, b);
  EXPECT_TRUE(IsEqual(proof, MakeProof(key, Role::kConnector, a, b)));
  EXPECT_FALSE(IsEqual(proof, MakeProof(key, Role::kAcceptor, a, b)));
  EXPECT_FALSE(IsEqual(proof, MakeProof(key, Role::kConnector, b, a)));
  for (size_t i = 0; i < key.bytes.size(); ++i) {
    RoundKey other = key;
    other.bytes[i] ^= 1;
    EXPECT_FALSE(IsEqual(proof, MakeProof(other, Role::kConnector, a, b))) << i;
  }
}

// Rank 0 of two, which waits while strangers come.
class Acceptor {
 public:
  Acceptor() : rig_(2) { rig_.options().handshake_patience = milliseconds(100); }
  ~Acceptor() {
    if (thread_.joinable()) thread_.join();
  }
  GroupRig& rig() { return rig_; }
  void Start() {
    thread_ = std::thread([this] {
      auto group = rig_.Join(0);
      ASSERT_TRUE(group.ok()) << group.status().message();
      EXPECT_TRUE((*group)->Barrier().Wait().ok());
    });
    auto endpoint = rig_.store().Get(EndpointKey(rig_.OptionsOf(1), 0), milliseconds(30000));
    ASSERT_TRUE(endpoint.ok());
    endpoint_ = *endpoint;
  }
  Socket Connect() {
    auto socket = StartConnect(endpoint_);
    EXPECT_TRUE(socket.ok());
    pollfd fd{socket->fd(), POLLOUT, 0};
    EXPECT_EQ(poll(&fd, 1, 30000), 1);
    return *std::move(socket);
  }
  // The real rank 1 comes; both get through a barrier.
  void JoinRightly() {
    auto group = rig_.Join(1);
    ASSERT_TRUE(group.ok()) << group.status().message();
    EXPECT_TRUE((*group)->Barrier().Wait().ok());
  }

 private:
  GroupRig rig_;
  std::string endpoint_;
  std::thread thread_;
};

// What the other end sends until it closes.
std::string ReadToEnd(const Socket& socket) {
  std::string all;
  for (;;) {
    pollfd fd{socket.fd(), POLLIN, 0};
    if (poll(&fd, 1, 30000) != 1) return "still open";
    char bytes[256];
    ssize_t got = recv(socket.fd(), bytes, sizeof(bytes), 0);
    if (got <= 0) return all;
    all.append(bytes, static_cast<size_t>(got));
  }
}

// How far rank 1 with these options gets against rank 0.
std::string ProblemOf(Acceptor& acceptor, const Opening& opening, const RoundKey& key) {
  HandshakeSession session(acceptor.Connect(), Role::kConnector, opening, key, 0);
  for (;;) {
    HandshakeSession::Outcome outcome = session.GoOn();
    if (outcome == HandshakeSession::Outcome::kProven) return "proven";
    if (outcome == HandshakeSession::Outcome::kRefused) return session.problem();
    pollfd fd{session.fd(), session.events(), 0};
    if (poll(&fd, 1, 30000) != 1) return "stuck";
  }
}

TEST(HandshakeWithStrangers, GarbageIsDroppedWithoutAnAnswer) {
  Acceptor acceptor;
  acceptor.Start();
  Socket stranger = acceptor.Connect();
  std::string garbage(200, 'x');
  ASSERT_EQ(send(stranger.fd(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 200);
  EXPECT_EQ(ReadToEnd(stranger), "");
  acceptor.JoinRightly();
}

TEST(HandshakeWithStrangers, TheSilentOneIsDroppedAndHoldsNobodyUp) {
  Acceptor acceptor;
  acceptor.Start();
  Socket silent = acceptor.Connect(), half = acceptor.Connect();
  ASSERT_EQ(send(half.fd(), "mus", 3, MSG_NOSIGNAL), 3);
  EXPECT_EQ(ReadToEnd(silent), "");
  EXPECT_EQ(ReadToEnd(half), "");
  acceptor.JoinRightly();
}

TEST(HandshakeWithStrangers, ACrowdOfThemDoesNoHarm) {
  Acceptor acceptor;
  acceptor.rig().options().handshake_patience = std::chrono::minutes(1);
  acceptor.Start();
  std::vector<Socket> crowd;
  crowd.reserve(200);
  for (int i = 0; i < 200; ++i) crowd.push_back(acceptor.Connect());
  acceptor.JoinRightly();
}

TEST(HandshakeWithStrangers, ACrowdDoesNotPushOutARanksOwnCall) {
  // The test is rank 0, and answers rank 1's call only after a crowd has come to rank 1.
  GroupRig rig(2);
  rig.options().handshake_patience = std::chrono::minutes(1);
  auto listener = Listen("127.0.0.1");
  ASSERT_TRUE(listener.ok());
  CpuGroupOptions zero = rig.OptionsOf(0);
  ASSERT_TRUE(rig.store().Set(EndpointKey(zero, 0), listener->endpoint).ok());
  std::thread one([&] {
    auto group = rig.Join(1);
    EXPECT_TRUE(group.ok()) << group.status().message();
  });
  pollfd called{listener->socket.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&called, 1, 30000), 1);
  Socket call(accept4(listener->socket.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));

  auto endpoint = rig.store().Get(EndpointKey(zero, 1), milliseconds(30000));
  ASSERT_TRUE(endpoint.ok());
  std::vector<Socket> crowd;
  for (int i = 0; i < 200; ++i) {
    auto socket = StartConnect(*endpoint);
    ASSERT_TRUE(socket.ok());
    crowd.push_back(*std::move(socket));
  }
  // The first of them has had to go.
  EXPECT_EQ(ReadToEnd(crowd.front()), "");

  Opening ours{zero.world, 0, 2, HashOfName(zero.name), {}};
  HandshakeSession session(std::move(call), Role::kAcceptor, ours, zero.key, -1);
  HandshakeSession::Outcome outcome = session.GoOn();
  while (outcome == HandshakeSession::Outcome::kGoing) {
    pollfd fd{session.fd(), session.events(), 0};
    ASSERT_EQ(poll(&fd, 1, 30000), 1);
    outcome = session.GoOn();
  }
  EXPECT_EQ(outcome, HandshakeSession::Outcome::kProven) << session.problem();
  one.join();
}

TEST(HandshakeWithStrangers, AnotherRoundWorldOrKeyIsRefused) {
  Acceptor acceptor;
  acceptor.Start();
  CpuGroupOptions options = acceptor.rig().OptionsOf(1);
  Opening right{options.world, 1, 2, HashOfName(options.name), {}};

  Opening stale = right;
  stale.world.round = RoundId(options.world.round.value + 1);
  EXPECT_EQ(ProblemOf(acceptor, stale, options.key), "the other end closed the connection");
  Opening other = right;
  other.world.id.bytes[0] ^= 1;
  EXPECT_EQ(ProblemOf(acceptor, other, options.key), "the other end closed the connection");
  Opening lower = right;
  lower.rank = 0;
  EXPECT_EQ(ProblemOf(acceptor, lower, options.key), "the other end closed the connection");
  RoundKey wrong = options.key;
  wrong.bytes[31] ^= 1;
  // Closed before rank 0 gave a proof of its own.
  EXPECT_EQ(ProblemOf(acceptor, right, wrong), "the other end closed the connection");
  acceptor.JoinRightly();
}

TEST(HandshakeWithStrangers, AnAcceptorWithoutTheKeyIsFoundOut) {
  GroupRig rig(2);
  rig.options().connect_patience = milliseconds(300);
  CpuGroupOptions zero = rig.OptionsOf(0);
  zero.key.bytes[0] ^= 1;
  std::thread thread([&] {
    Status status = CreateCpuGroup(rig.store(), rig.abort(0), zero).status();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  });
  Status status = rig.Join(1).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("rank 0 (the other end closed"), std::string::npos)
      << status.message();
  thread.join();
}

}  // namespace
}  // namespace muster::cpu
