#include "launcher/port_holder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

TEST(PortHolder, NamesTheProcessThatListens) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  uint16_t port = ntohs(address.sin_port);

  EXPECT_EQ(HolderOfPort(port), "") << "bound, but not listening";
  ASSERT_EQ(listen(listener, 1), 0);
  EXPECT_THAT(HolderOfPort(port), testing::HasSubstr("process " + std::to_string(getpid()) + " ("));
  close(listener);
  EXPECT_EQ(HolderOfPort(port), "");
}

}  // namespace
}  // namespace muster::launcher
