#include "agent/torch_store/store_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "agent/torch_store/wire_bytes.h"
#include "gtest/gtest.h"

namespace muster::agent::torch_store {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

int Connect(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

// Sets a key and returns how many there are then; empty where the other end closes.
std::string SetAndCount(int fd, const std::string& key) {
  const std::string request = Byte(0) + Text(key) + Text("v") + Byte(6);
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  char answer[8];
  ssize_t got = recv(fd, answer, sizeof answer, MSG_WAITALL);
  return got > 0 ? std::string(answer, static_cast<size_t>(got)) : "";
}

TEST(StoreHost, ListensAtWhatItOffersAndServesItWhenOpened) {
  StoreHost host(nullptr);
  const uint16_t port = host.Offer(kLoopback);
  ASSERT_NE(port, 0);
  EXPECT_EQ(host.Offer(kLoopback), port);
  // Another node's worker comes before this agent has heard of the round.
  int early = Connect(port);
  ASSERT_GE(early, 0);
  EXPECT_EQ(host.Open(kLoopback, port), 0);
  EXPECT_EQ(SetAndCount(early, "a"), Eight(1));
  int late = Connect(port);
  EXPECT_EQ(SetAndCount(late, "b"), Eight(2));
  close(early);
  close(late);
}

TEST(StoreHost, HasANewPortAndAnEmptyStoreInEachRound) {
  StoreHost host(nullptr);
  const uint16_t first = host.Offer(kLoopback);
  ASSERT_EQ(host.Open(kLoopback, first), 0);
  int old_client = Connect(first);
  EXPECT_EQ(SetAndCount(old_client, "old"), Eight(1));
  const uint16_t second = host.Offer(kLoopback);
  EXPECT_NE(second, first);
  // The round before is served on meanwhile.
  EXPECT_EQ(SetAndCount(old_client, "older"), Eight(2));
  ASSERT_EQ(host.Open(kLoopback, second), 0);
  char byte = 0;
  EXPECT_LE(recv(old_client, &byte, 1, 0), 0);
  EXPECT_EQ(Connect(first), -1);
  int client = Connect(second);
  EXPECT_EQ(SetAndCount(client, "new"), Eight(1));
  close(old_client);
  close(client);
}

TEST(StoreHost, KeepsItsOfferThroughARoundWithRank0Elsewhere) {
  StoreHost host(nullptr);
  const uint16_t offered = host.Offer(kLoopback);
  host.Close();
  EXPECT_EQ(host.Offer(kLoopback), offered);
  ASSERT_EQ(host.Open(kLoopback, offered), 0);
  const uint16_t next = host.Offer(kLoopback);
  host.Close();
  EXPECT_EQ(Connect(offered), -1);
  EXPECT_EQ(host.Offer(kLoopback), next);
}

TEST(StoreHost, OffersAnewWhenItsAddressChanges) {
  StoreHost host(nullptr);
  const uint16_t loopback = host.Offer(kLoopback);
  const uint16_t all = host.Offer("10.1.2.3");
  EXPECT_NE(all, 0);
  EXPECT_EQ(Connect(loopback), -1);
  EXPECT_EQ(host.Open("10.1.2.3", all), 0);
  int client = Connect(all);
  EXPECT_EQ(SetAndCount(client, "k"), Eight(1));
  close(client);
}

TEST(StoreHost, OpensAPortThatItOfferedLongAgoIfItIsFree) {
  StoreHost host(nullptr);
  const uint16_t first = host.Offer(kLoopback);
  ASSERT_EQ(host.Open(kLoopback, first), 0);
  host.Offer(kLoopback);
  EXPECT_EQ(host.Open(kLoopback, first), 0);
  int client = Connect(first);
  EXPECT_EQ(SetAndCount(client, "k"), Eight(1));
  close(client);

  int error = 0;
  StoreListener other = StoreListener::Open(kLoopback, 0, &error);
  EXPECT_EQ(host.Open(kLoopback, other.port()), EADDRINUSE);
  EXPECT_EQ(host.Open(kLoopback, 0), EADDRNOTAVAIL);
}

TEST(StoreHost, SaysWhyItHasNothingToOffer) {
  StoreHost host(nullptr);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{3, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(host.Offer(kLoopback), 0);
  EXPECT_EQ(host.Open(kLoopback, 0), EMFILE);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const uint16_t port = host.Offer(kLoopback);
  EXPECT_NE(port, 0);
  EXPECT_EQ(host.Open(kLoopback, port), 0);
}

}  // namespace
}  // namespace muster::agent::torch_store
