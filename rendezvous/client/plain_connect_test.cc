#include "rendezvous/client/plain_connect.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A socket bound to a port of the kernel's choice on one loopback address.
class Bound {
 public:
  explicit Bound(const std::string& address, int backlog = -1) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in local{};
    local.sin_family = AF_INET;
    inet_pton(AF_INET, address.c_str(), &local.sin_addr);
    socklen_t size = sizeof(local);
    auto* raw = reinterpret_cast<sockaddr*>(&local);
    if (bind(fd_, raw, size) != 0 || getsockname(fd_, raw, &size) != 0) return;
    if (backlog >= 0 && listen(fd_, backlog) != 0) return;
    port = ntohs(local.sin_port);
  }
  ~Bound() { close(fd_); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  uint16_t port = 0;

 private:
  int fd_ = -1;
};

TEST(PlainConnect, AListenerAcceptsThoughItsProcessSaysNothing) {
  Bound listener("127.0.0.1", 8);
  ASSERT_NE(listener.port, 0);
  EXPECT_EQ(PlainConnect("127.0.0.1", listener.port, seconds(10)), ConnectAnswer::kAccepted);
}

TEST(PlainConnect, APortWithoutAListenerRefuses) {
  Bound silent("127.0.0.1");
  ASSERT_NE(silent.port, 0);
  EXPECT_EQ(PlainConnect("127.0.0.1", silent.port, seconds(10)), ConnectAnswer::kRefused);
  EXPECT_EQ(PlainConnect("::1", silent.port, seconds(10)), ConnectAnswer::kRefused);
}

TEST(PlainConnect, AConnectionThatMeetsItselfHasFoundNobody) {
  // Free ports from which the kernel chooses: some of these tries meet themselves, none is
  // accepted.
  for (uint16_t port = 40000; port < 41000; ++port) {
    ConnectAnswer answer = PlainConnect("127.77.0.5", port, seconds(10));
    EXPECT_EQ(answer, ConnectAnswer::kRefused) << port;
  }
}

TEST(PlainConnect, AFullQueueIsNoAnswer) {
  // Nobody accepts: the kernel drops what comes when the queue is full.
  Bound listener("127.0.0.1", 0);
  ASSERT_NE(listener.port, 0);
  int kept = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(listener.port);
  inet_pton(AF_INET, "127.0.0.1", &there.sin_addr);
  ASSERT_EQ(connect(kept, reinterpret_cast<sockaddr*>(&there), sizeof(there)), 0);
  EXPECT_EQ(PlainConnect("127.0.0.1", listener.port, milliseconds(50)), ConnectAnswer::kNothing);
  close(kept);
}

TEST(PlainConnect, WhatIsNoAddressIsNoAnswer) {
  EXPECT_EQ(PlainConnect("localhost", 1, seconds(10)), ConnectAnswer::kNothing);
  EXPECT_EQ(PlainConnect("", 1, seconds(10)), ConnectAnswer::kNothing);
}

}  // namespace
}  // namespace muster::rendezvous
