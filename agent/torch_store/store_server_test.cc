// The server with real sockets on loopback; the test is its clients.
#include "agent/torch_store/store_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/torch_store/wire_bytes.h"
#include "base/mutex.h"
#include "gtest/gtest.h"

namespace muster::agent::torch_store {
namespace {

const std::string kStop(1, '\0');

std::string SetOf(const std::string& key, const std::string& value) {
  return Byte(1) + Text(key) + Text(value);
}
std::string GetOf(const std::string& key) { return Byte(3) + Text(key); }
std::string WaitFor(const std::string& key) { return Byte(6) + Eight(1) + Text(key); }
std::string CountKeys() { return Byte(7); }

// A client with a deadline on everything.
class Client {
 public:
  explicit Client(int fd) : fd_(fd) {
    timeval patience{.tv_sec = 30, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  static std::unique_ptr<Client> To(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      close(fd);
      return nullptr;
    }
    auto client = std::make_unique<Client>(fd);
    client->Say(Greeting());
    return client;
  }

  void Say(const std::string& bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      ssize_t n = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }
  // Exactly so many bytes; fewer where the other end closed before.
  std::string Hear(size_t size) const {
    std::string bytes(size, '?');
    size_t got = 0;
    while (got < size) {
      ssize_t n = recv(fd_, bytes.data() + got, size - got, 0);
      if (n <= 0) break;
      got += static_cast<size_t>(n);
    }
    bytes.resize(got);
    return bytes;
  }
  std::string Ask(const std::string& bytes, size_t answer) const {
    Say(bytes);
    return Hear(answer);
  }
  // Whether the other end closes without another word.
  bool IsClosed() const {
    char byte = 0;
    ssize_t got = recv(fd_, &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  const int fd_;
};

class StoreServerTest : public testing::Test {
 protected:
  StoreServerOptions Options() {
    StoreServerOptions options;
    options.say = [this](const std::string& line) {
      base::MutexLock lock(mutex_);
      said_.push_back(line);
    };
    return options;
  }
  void Begin(StoreServer& server) {
    int error = -1;
    StoreListener listener = StoreListener::Open("127.0.0.1", 0, &error);
    ASSERT_EQ(error, 0);
    port_ = listener.port();
    server.BeginRound(std::move(listener));
  }
  std::unique_ptr<Client> Connect() const { return Client::To(port_); }
  std::vector<std::string> Said() {
    base::MutexLock lock(mutex_);
    return said_;
  }

  uint16_t port_ = 0;
  base::Mutex mutex_;
  std::vector<std::string> said_ MUSTER_GUARDED_BY(mutex_);
};

TEST_F(StoreServerTest, ServesClientsOfEachOther) {
  StoreServer server(Options());
  Begin(server);
  auto a = Connect(), b = Connect();
  b->Say(WaitFor("k"));
  a->Say(SetOf("k", "value"));
  EXPECT_EQ(b->Hear(1), kStop);
  EXPECT_EQ(b->Ask(GetOf("k"), 13), Text("value"));
  // All at once, and a byte at a time.
  EXPECT_EQ(a->Ask(SetOf("l", "1") + CountKeys() + GetOf("l"), 17), Eight(2) + Text("1"));
  for (char byte : GetOf("k")) a->Say(std::string(1, byte));
  EXPECT_EQ(a->Hear(13), Text("value"));
}

TEST_F(StoreServerTest, TakesWhatAClientAskedBeforeItWent) {
  StoreServer server(Options());
  Begin(server);
  auto waiting = Connect();
  waiting->Say(WaitFor("last"));
  for (int i = 0; i < 100; ++i) {
    Connect()->Say(SetOf("k" + std::to_string(i), std::string(3000, 'v')) +
                   (i == 99 ? SetOf("last", "") : ""));
  }
  EXPECT_EQ(waiting->Hear(1), kStop);
  // Of others the last word may still be on its way.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(waiting->Ask(WaitFor("k" + std::to_string(i)), 1), kStop);
  EXPECT_EQ(waiting->Ask(CountKeys(), 8), Eight(101));
}

TEST_F(StoreServerTest, LeavesNothingOfTheRoundBefore) {
  StoreServer server(Options());
  Begin(server);
  const uint16_t old_port = port_;
  auto old_client = Connect(), silent = Connect();
  EXPECT_EQ(old_client->Ask(SetOf("k", "old") + CountKeys(), 8), Eight(1));
  auto queued = Connect();
  queued->Say(SetOf("queued", "old"));
  Begin(server);
  EXPECT_TRUE(old_client->IsClosed());
  EXPECT_TRUE(silent->IsClosed());
  EXPECT_EQ(Client::To(old_port), nullptr);
  auto client = Connect();
  EXPECT_EQ(client->Ask(CountKeys(), 8), Eight(0));
  EXPECT_EQ(client->Ask(SetOf("k", "new") + GetOf("k"), 11), Text("new"));
}

TEST_F(StoreServerTest, TakesOverSockets) {
  StoreServer server(Options());
  auto adopt = [&server] {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    // The client's end may block.
    int flags = 0;
    EXPECT_EQ(ioctl(ends[0], FIONBIO, &flags), 0);
    server.Adopt(ends[1]);
    return std::make_unique<Client>(ends[0]);
  };
  // Before the first round nobody is served.
  EXPECT_TRUE(adopt()->IsClosed());
  server.BeginRound({});
  auto first = adopt();
  EXPECT_EQ(first->Ask(Greeting() + SetOf("k", "1") + CountKeys(), 8), Eight(1));
  // Taken over before the next round begins, so of the round before.
  auto unheard = adopt();
  server.BeginRound({});
  EXPECT_TRUE(first->IsClosed());
  EXPECT_TRUE(unheard->IsClosed());
  EXPECT_EQ(adopt()->Ask(Greeting() + CountKeys(), 8), Eight(0));
}

TEST_F(StoreServerTest, ClosesWhoIsMalformedAndSaysWhyOnce) {
  StoreServer server(Options());
  Begin(server);
  auto good = Connect();
  EXPECT_EQ(good->Ask(SetOf("k", "v") + CountKeys(), 8), Eight(1));
  for (int i = 0; i < 3; ++i) {
    auto bad = Connect();
    bad->Say(GetOf("k") + Byte(99) + SetOf("k", "harm"));
    EXPECT_EQ(bad->Hear(9), Text("v"));
    EXPECT_TRUE(bad->IsClosed());
  }
  auto text = Connect();
  text->Say(SetOf("t", "text") + Byte(4) + Text("t") + Eight(1));
  EXPECT_TRUE(text->IsClosed());
  EXPECT_EQ(good->Ask(GetOf("k"), 9), Text("v"));
  const std::vector<std::string> said = Said();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_TRUE(said[0].starts_with("closed the connection of 127.0.0.1:")) << said[0];
  EXPECT_TRUE(said[0].ends_with(": an unknown request (99)")) << said[0];
  EXPECT_TRUE(said[1].ends_with(": an addition to key \"t\", whose value is no whole number"))
      << said[1];
}

TEST_F(StoreServerTest, PassesAQueuesValueOnWhenWhoWasCalledIsGone) {
  StoreServer server(Options());
  Begin(server);
  auto first = Connect(), second = Connect();
  // Counted, so that they wait in this order.
  EXPECT_EQ(first->Ask(CountKeys() + WaitFor("q"), 8), Eight(0));
  EXPECT_EQ(second->Ask(CountKeys() + WaitFor("q"), 8), Eight(0));
  Connect()->Say(Byte(14) + Text("q") + Text("1"));
  EXPECT_EQ(first->Hear(1), kStop);
  first.reset();
  EXPECT_EQ(second->Hear(1), kStop);
  EXPECT_EQ(second->Ask(Byte(15) + Text("q"), 17), Eight(1) + Text("1"));
}

TEST_F(StoreServerTest, IsNotHeldUpByAClientThatDoesNotRead) {
  StoreServer server(Options());
  Begin(server);
  const std::string value(1 << 20, 'v');
  auto lazy = Connect(), other = Connect();
  EXPECT_EQ(lazy->Ask(SetOf("k", value) + CountKeys(), 8), Eight(1));
  constexpr int kAsked = 100;
  for (int i = 0; i < kAsked; ++i) lazy->Say(GetOf("k"));
  lazy->Say(SetOf("end", ""));
  EXPECT_EQ(other->Ask(CountKeys(), 8), Eight(1));
  for (int i = 0; i < kAsked; ++i) {
    ASSERT_EQ(lazy->Hear(8), Eight(value.size()));
    ASSERT_EQ(lazy->Hear(value.size()), value);
  }
  EXPECT_EQ(other->Ask(WaitFor("end"), 1), kStop);
}

TEST_F(StoreServerTest, ServesAThousandClients) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  constexpr int kClients = 1000;
  if (limit.rlim_max < 2 * kClients + 100) GTEST_SKIP() << "too few descriptors are allowed";
  StoreServer server(Options());
  Begin(server);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(Connect());
    ASSERT_NE(clients.back(), nullptr) << i;
    clients.back()->Say(SetOf("rank" + std::to_string(i), std::to_string(i)) + Byte(18) +
                        Text("all") + Eight(kClients));
  }
  for (int i = 0; i < kClients; ++i) ASSERT_EQ(clients[i]->Hear(1), kStop) << i;
  for (int i = 0; i < kClients; ++i) {
    const int peer = (i + 7) % kClients;
    const std::string expected = Text(std::to_string(peer));
    ASSERT_EQ(clients[i]->Ask(GetOf("rank" + std::to_string(peer)), expected.size()), expected);
  }
}

TEST_F(StoreServerTest, RefusesConnectionsBeyondItsLimit) {
  StoreServerOptions options = Options();
  options.max_connections = 2;
  StoreServer server(options);
  Begin(server);
  auto a = Connect();
  EXPECT_EQ(a->Ask(CountKeys(), 8), Eight(0));
  auto b = Connect();
  EXPECT_EQ(b->Ask(CountKeys(), 8), Eight(0));
  EXPECT_TRUE(Connect()->IsClosed());
  EXPECT_EQ(a->Ask(CountKeys(), 8), Eight(0));
  EXPECT_EQ(Said(),
            (std::vector<std::string>{"refused a connection: there are 2, as many as it takes"}));
}

TEST_F(StoreServerTest, ClosesWhoKeepsTooMuchUnderWay) {
  StoreServerOptions options = Options();
  options.max_connections = 100;
  options.max_buffered_bytes = 4 << 20;
  StoreServer server(options);
  Begin(server);
  auto small = Connect(), large = Connect();
  small->Say(WaitFor("k"));
  // Never whole.
  large->Say(Byte(1) + Text("k") + Eight(16 << 20) + std::string(8 << 20, 'v'));
  EXPECT_TRUE(large->IsClosed());
  Connect()->Say(SetOf("k", "v"));
  EXPECT_EQ(small->Hear(1), kStop);
  ASSERT_EQ(Said().size(), 1u);
  EXPECT_TRUE(Said()[0].ends_with(": too many bytes are under way (4 MiB)")) << Said()[0];
}

TEST(StoreListener, BindsLoopbackAloneOrAllAddresses) {
  int error = -1;
  StoreListener loopback = StoreListener::Open("127.0.0.1", 0, &error);
  ASSERT_TRUE(loopback.is_open());
  EXPECT_NE(loopback.port(), 0);
  EXPECT_NE(Client::To(loopback.port()), nullptr);
  StoreListener second = StoreListener::Open("127.0.0.1", loopback.port(), &error);
  EXPECT_FALSE(second.is_open());
  EXPECT_EQ(error, EADDRINUSE);
  // Only this one of the loopback addresses.
  StoreListener other = StoreListener::Open("127.0.0.2", loopback.port(), &error);
  EXPECT_TRUE(other.is_open());
  EXPECT_EQ(error, 0);
  for (const char* address : {"10.1.2.3", "node7", ""}) {
    StoreListener all = StoreListener::Open(address, 0, &error);
    ASSERT_TRUE(all.is_open()) << address;
    EXPECT_NE(Client::To(all.port()), nullptr);
    const uint16_t port = all.port();
    StoreListener moved = std::move(all);
    EXPECT_EQ(moved.port(), port);
    moved.Close();
    EXPECT_EQ(Client::To(port), nullptr);
  }
}

}  // namespace
}  // namespace muster::agent::torch_store
