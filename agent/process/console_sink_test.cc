#include "agent/process/console_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

Instant At(Duration after) { return Instant(std::chrono::seconds(1000)) + after; }
Instant At(int ms) { return At(milliseconds(ms)); }

// A pipe as the console, which the test reads when it wants to.
class ConsoleSinkTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  // What the console holds now.
  size_t Read() {
    std::vector<char> chunk(1 << 20);
    size_t total = 0;
    for (ssize_t got = 0; (got = read(ends_[0], chunk.data(), chunk.size())) > 0;) {
      total += static_cast<size_t>(got);
    }
    return total;
  }

  int ends_[2] = {-1, -1};
};

TEST_F(ConsoleSinkTest, KeepsWhatTheConsoleDoesNotTakeYet) {
  ConsoleSink sink(ends_[1]);
  std::string text(1 << 20, 'x');
  sink.Add(At(0), text);
  EXPECT_GT(sink.backlog_size(), 0U);
  EXPECT_GE(sink.poll_fd(), 0);
  EXPECT_FALSE(sink.HoldsUp(At(0)));
  size_t shown = 0;
  while (sink.backlog_size() > 0) {
    shown += Read();
    sink.Flush(At(1));
  }
  EXPECT_EQ(shown + Read(), text.size());
  EXPECT_EQ(sink.poll_fd(), -1);
  EXPECT_EQ(sink.lost_bytes(), 0U);
}

TEST_F(ConsoleSinkTest, AStuckConsoleHoldsWorkersUpForAMomentAndThenLosesOutput) {
  ConsoleSink sink(ends_[1]);
  std::string text(kConsoleBacklogBytes + (1 << 20), 'x');
  sink.Add(At(0), text);
  EXPECT_TRUE(sink.HoldsUp(At(0)));
  EXPECT_EQ(sink.HoldsUpUntil(), At(kStuckAfter));
  sink.Add(At(499), "kept\n");
  EXPECT_EQ(sink.lost_bytes(), 0U);
  EXPECT_FALSE(sink.HoldsUp(At(500)));
  sink.Add(At(500), "lost\n");
  EXPECT_EQ(sink.lost_bytes(), 5U);
  EXPECT_EQ(sink.why_lost(), "it takes no more output");
  // The agent's own words are kept.
  sink.AddAlways(At(500), "muster: verdict\n");
  EXPECT_EQ(sink.lost_bytes(), 5U);
}

TEST_F(ConsoleSinkTest, ALaggingConsoleHoldsWorkersUpForABoundedTimeInAll) {
  ConsoleSink sink(ends_[1]);
  sink.Add(At(0), std::string(kConsoleBacklogBytes + (1 << 20), 'x'));
  // It takes a little every 100 ms, never enough.
  Instant now = At(0);
  while (sink.HoldsUp(now)) {
    now = now + milliseconds(100);
    ASSERT_GT(Read(), 0U);
    sink.Flush(now);
    sink.Add(now, std::string(64 << 10, 'x'));
  }
  EXPECT_EQ(now, At(kConsolePatience));
  // Patience is back once it has caught up.
  while (sink.backlog_size() > 0) {
    Read();
    sink.Flush(now);
  }
  sink.Add(now, std::string(kConsoleBacklogBytes + (1 << 20), 'x'));
  EXPECT_TRUE(sink.HoldsUp(now));
}

TEST_F(ConsoleSinkTest, ReaderGoneAndFullDiskAreReasonsNotSignals) {
  signal(SIGPIPE, SIG_IGN);
  ConsoleSink sink(ends_[1]);
  close(ends_[0]);
  ends_[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  sink.Add(At(0), "text\n");
  EXPECT_EQ(sink.lost_bytes(), 5U);
  EXPECT_EQ(sink.why_lost(), "Broken pipe");
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ConsoleSink on_full_disk(full);
  on_full_disk.Add(At(0), "text\n");
  EXPECT_EQ(on_full_disk.why_lost(), "No space left on device");
  close(full);
}

TEST(ConsoleSink, ASocketIsNotBlockedEither) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ConsoleSink sink(ends[1]);
  sink.Add(At(0), std::string(4 << 20, 'x'));
  EXPECT_GT(sink.backlog_size(), 0U);
  EXPECT_EQ(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ConsoleSinkTest, KnowsWhenTwoDescriptorsLeadToOnePlace) {
  int copy = dup(ends_[1]);
  EXPECT_TRUE(ConsoleSink::LeadToSamePlace(ends_[1], copy));
  close(copy);
  int other[2];
  ASSERT_EQ(pipe2(other, O_CLOEXEC), 0);
  EXPECT_FALSE(ConsoleSink::LeadToSamePlace(ends_[1], other[1]));
  close(other[0]);
  close(other[1]);
}

}  // namespace
}  // namespace muster::agent
