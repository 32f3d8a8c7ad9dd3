#include "rendezvous/server/first_byte_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Keeps what it is given, for a test that waits for it.
class Taken : public GrpcAcceptor, public NonGrpcAcceptor {
 public:
  ~Taken() override {
    for (int fd : fds_) close(fd);
  }
  void Accept(int fd) override { Add(fd, 'g'); }
  void Accept(int fd, std::optional<uint8_t> first_byte) override {
    Add(fd, static_cast<char>(first_byte.value_or('s')));
  }

  // 'g' for gRPC, else the byte that the other was told, 's' if it was none.
  std::optional<char> Next() {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    base::MutexLock lock(mutex_);
    while (kinds_.empty()) {
      if (changed_.wait_until(mutex_, end) == std::cv_status::timeout) return std::nullopt;
    }
    char kind = kinds_.front();
    kinds_.pop_front();
    return kind;
  }
  // What can be read from the last one that came.
  std::string ReadLast() {
    base::MutexLock lock(mutex_);
    char text[64];
    pollfd wait{fds_.back(), POLLIN, 0};
    poll(&wait, 1, 20'000);
    ssize_t got = read(fds_.back(), text, sizeof(text));
    return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
  }

 private:
  void Add(int fd, char kind) {
    {
      base::MutexLock lock(mutex_);
      fds_.push_back(fd);
      kinds_.push_back(kind);
    }
    changed_.notify_all();
  }
  base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<char> kinds_ MUSTER_GUARDED_BY(mutex_);
  std::vector<int> fds_ MUSTER_GUARDED_BY(mutex_);
};

class Client {
 public:
  explicit Client(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_connected() const { return is_connected_; }
  void Say(const std::string& bytes) const {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // True once the other side has closed.
  bool WaitForClose(milliseconds most = seconds(20)) const {
    pollfd wait{fd_, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(most.count())) != 1) return false;
    char byte;
    return recv(fd_, &byte, 1, MSG_DONTWAIT) <= 0;
  }

 private:
  const int fd_;
  bool is_connected_ = false;
};

std::unique_ptr<FirstByteListener> Listen(FirstByteListenerOptions options = {}) {
  if (options.host.empty()) options.host = "127.0.0.1";
  auto listener = FirstByteListener::Listen(options);
  EXPECT_TRUE(listener.ok()) << listener.status();
  return *std::move(listener);
}

TEST(FirstByteListener, SortsConnectionsByTheirFirstByte) {
  Taken grpc, other;
  auto listener = Listen();
  listener->Start(&grpc, &other);
  Client http2(listener->port()), tls(listener->port()), store(listener->port());
  http2.Say("PRI * HTTP/2.0");
  EXPECT_EQ(grpc.Next(), 'g');
  // Nothing was read away.
  EXPECT_EQ(grpc.ReadLast(), "PRI * HTTP/2.0");
  tls.Say("\x16\x03\x01");
  EXPECT_EQ(grpc.Next(), 'g');
  store.Say(std::string("\0\x85\x46", 3));
  EXPECT_EQ(other.Next(), '\0');
  EXPECT_EQ(other.ReadLast(), std::string("\0\x85\x46", 3));
  listener->Stop();
}

TEST(FirstByteListener, ClosesTheRestWhereNobodyTakesThem) {
  Taken grpc;
  auto listener = Listen();
  listener->Start(&grpc, nullptr);
  Client web(listener->port()), binary(listener->port()), leaves(listener->port());
  web.Say("GET / HTTP/1.1\r\n\r\n");
  binary.Say("\xff");
  EXPECT_TRUE(web.WaitForClose());
  EXPECT_TRUE(binary.WaitForClose());
  Client good(listener->port());
  good.Say("P");
  EXPECT_EQ(grpc.Next(), 'g');
}

TEST(FirstByteListener, ClosesTheSilentAfterTheirTime) {
  Taken grpc;
  auto listener = Listen({.first_byte_timeout = milliseconds(50)});
  listener->Start(&grpc, nullptr);
  Client silent(listener->port());
  EXPECT_TRUE(silent.WaitForClose());
}

TEST(FirstByteListener, HandsTheSilentOnWhereSomebodyTakesThem) {
  Taken grpc, other;
  auto listener = Listen({.first_byte_timeout = milliseconds(50)});
  listener->Start(&grpc, &other);
  Client silent(listener->port());
  EXPECT_EQ(other.Next(), 's');
  silent.Say("P");
  EXPECT_EQ(other.ReadLast(), "P");
}

TEST(FirstByteListener, DisownsWhatIsConnectedAlready) {
  Taken grpc, other;
  auto listener = Listen();
  // Before it runs nothing has been accepted, so nothing is of earlier.
  listener->DisownEarlier();
  Client waits_in_the_kernel(listener->port());
  listener->Start(&grpc, &other);
  Client speaks_later(listener->port()), is_grpc(listener->port());
  listener->DisownEarlier();
  Client later(listener->port());
  later.Say("\x01");
  EXPECT_EQ(other.Next(), '\x01');
  waits_in_the_kernel.Say("\x02");
  EXPECT_TRUE(waits_in_the_kernel.WaitForClose());
  speaks_later.Say("\x03");
  EXPECT_TRUE(speaks_later.WaitForClose());
  is_grpc.Say("P");
  EXPECT_EQ(grpc.Next(), 'g');
  Client last(listener->port());
  last.Say("\x04");
  EXPECT_EQ(other.Next(), '\x04');
  listener->Stop();
  listener->DisownEarlier();
}

TEST(FirstByteListener, OfTooManySilentOnesTheOldestIsClosed) {
  Taken grpc;
  auto listener = Listen({.first_byte_timeout = seconds(60), .max_silent = 2});
  listener->Start(&grpc, nullptr);
  Client first(listener->port()), second(listener->port()), third(listener->port());
  EXPECT_TRUE(first.WaitForClose());
  EXPECT_FALSE(second.WaitForClose(milliseconds(0)));
  third.Say("P");
  EXPECT_EQ(grpc.Next(), 'g');
}

TEST(FirstByteListener, HandsOnEachOfManyThatCameAtOnce) {
  constexpr int kClients = 300;
  Taken grpc;
  auto listener = Listen();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(listener->port()));
    if (i % 2 == 0) clients.back()->Say("P");
  }
  listener->Start(&grpc, nullptr);
  for (int i = 1; i < kClients; i += 2) clients[i]->Say("P");
  for (int i = 0; i < kClients; ++i) ASSERT_EQ(grpc.Next(), 'g') << "number " << i;
}

TEST(FirstByteListener, GoesOnAfterItRanOutOfDescriptors) {
  Taken grpc;
  auto listener = Listen();
  listener->Start(&grpc, nullptr);
  Client before(listener->port());
  before.Say("P");
  EXPECT_EQ(grpc.Next(), 'g');
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  {
    // One descriptor left: it becomes the client's own end, none is left for the server's.
    const int spare = dup(0);
    rlimit none = limit;
    none.rlim_cur = static_cast<rlim_t>(spare) + 1;
    close(spare);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  Client during(listener->port());
  EXPECT_TRUE(during.is_connected());
  during.Say("P");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(grpc.Next(), 'g');
}

TEST(FirstByteListener, ThePortIsExclusive) {
  auto listener = Listen();
  for (const char* host : {"127.0.0.1", "localhost", ""}) {
    auto second = FirstByteListener::Listen({.host = host, .port = listener->port()});
    ASSERT_FALSE(second.ok()) << host;
    EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
  }
  const uint16_t port = listener->port();
  listener->Stop();
  EXPECT_TRUE(FirstByteListener::Listen({.host = "127.0.0.1", .port = port}).ok());
}

TEST(FirstByteListener, SaysWhyAHostCantBeListenedOn) {
  absl::Status foreign = FirstByteListener::Listen({.host = "192.0.2.1"}).status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kInvalidArgument) << foreign;
  EXPECT_NE(foreign.message().find("192.0.2.1"), std::string::npos);
  absl::Status unknown = FirstByteListener::Listen({.host = "no.such.host.invalid"}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument) << unknown;
  EXPECT_NE(unknown.message().find("no.such.host.invalid"), std::string::npos);
}

TEST(FirstByteListener, EmptyHostMeansEveryInterface) {
  Taken grpc;
  auto listener = FirstByteListener::Listen({.host = ""});
  ASSERT_TRUE(listener.ok()) << listener.status();
  (*listener)->Start(&grpc, nullptr);
  Client client((*listener)->port());
  EXPECT_TRUE(client.is_connected());
  client.Say("P");
  EXPECT_EQ(grpc.Next(), 'g');
}

}  // namespace
}  // namespace muster::rendezvous
