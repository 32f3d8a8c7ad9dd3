#include "agent/guardian/guardian_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

namespace muster::agent::guardian {
namespace {

class GuardianChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    left_ = std::make_unique<GuardianChannel>(ends[0]);
    right_ = std::make_unique<GuardianChannel>(ends[1]);
  }

  std::unique_ptr<GuardianChannel> left_;
  std::unique_ptr<GuardianChannel> right_;
};

TEST_F(GuardianChannelTest, CarriesFramesInOrder) {
  left_->Send({.kind = FrameKind::kPing, .body = "", .fds = {}});
  left_->Send({.kind = FrameKind::kFolder, .body = std::string("a\0b", 3), .fds = {}});
  ASSERT_TRUE(right_->Receive());
  auto first = right_->Next();
  auto second = right_->Next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->kind, FrameKind::kPing);
  EXPECT_EQ(second->kind, FrameKind::kFolder);
  EXPECT_EQ(second->body, std::string("a\0b", 3));
  EXPECT_FALSE(right_->Next());
}

TEST_F(GuardianChannelTest, CarriesDescriptorsWithTheirFrame) {
  for (int i = 0; i < 3; ++i) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(write(ends[1], &i, sizeof(i)), static_cast<ssize_t>(sizeof(i)));
    left_->Send({.kind = FrameKind::kSpawn, .body = "x", .fds = {ends[0], ends[1]}});
    // Send() has closed ours.
    EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
  }
  ASSERT_TRUE(right_->Receive());
  for (int i = 0; i < 3; ++i) {
    auto frame = right_->Next();
    ASSERT_TRUE(frame);
    ASSERT_EQ(frame->fds.size(), 2U);
    int value = -1;
    EXPECT_EQ(read(frame->fds[0], &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
    EXPECT_EQ(value, i);
    EXPECT_EQ(fcntl(frame->fds[0], F_GETFD), FD_CLOEXEC);
    for (int fd : frame->fds) close(fd);
  }
}

TEST_F(GuardianChannelTest, KeepsWhatTheSocketDoesNotTakeAndCarriesTheLargest) {
  std::string body(kMaxFrameBytes, 'x');
  left_->Send({.kind = FrameKind::kSpawn, .body = body, .fds = {}});
  left_->Send({.kind = FrameKind::kPing, .body = "", .fds = {}});
  EXPECT_TRUE(left_->has_backlog());
  std::vector<Frame> frames;
  while (frames.size() < 2) {
    left_->Flush();
    ASSERT_TRUE(right_->Receive());
    while (auto frame = right_->Next()) frames.push_back(std::move(*frame));
  }
  EXPECT_EQ(frames[0].body, body);
  EXPECT_EQ(frames[1].kind, FrameKind::kPing);
  EXPECT_FALSE(left_->has_backlog());
}

TEST_F(GuardianChannelTest, TellsTheEndAfterTheLastFrame) {
  left_->Send({.kind = FrameKind::kGone, .body = "why", .fds = {}});
  left_.reset();
  EXPECT_FALSE(right_->Receive());
  auto frame = right_->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->body, "why");
  // Sending to nobody is no error and no signal.
  right_->Send({.kind = FrameKind::kPong, .body = "", .fds = {}});
  EXPECT_FALSE(right_->has_backlog());
}

TEST_F(GuardianChannelTest, AMalformedFrameEndsTheChannel) {
  for (uint32_t length : {0U, 1U, 0xffffffffU}) {
    SetUp();
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes += "\x01\x01";
    ASSERT_EQ(write(left_->socket(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(right_->Receive());
    EXPECT_FALSE(right_->Next());
    EXPECT_TRUE(right_->is_dead());
  }
}

TEST_F(GuardianChannelTest, MissingDescriptorsEndTheChannel) {
  std::string bytes("\x02\0\0\0\x01\x01", 6);
  ASSERT_EQ(write(left_->socket(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(right_->Receive());
  EXPECT_FALSE(right_->Next());
  EXPECT_TRUE(right_->is_dead());
}

TEST(BodyReader, ReadsWhatWasWritten) {
  BodyWriter writer;
  writer.Int(-7).Text(std::string("a\0b", 3)).Ints({3, 0, 8000});
  writer.Texts({"", "x=y", std::string(1000, 'z')});
  std::string body = writer.Take();
  BodyReader reader(body);
  EXPECT_EQ(reader.Int(), -7);
  EXPECT_EQ(reader.Text(), std::string("a\0b", 3));
  EXPECT_EQ(reader.Ints(), (std::vector<int>{3, 0, 8000}));
  EXPECT_EQ(reader.Texts(), (std::vector<std::string>{"", "x=y", std::string(1000, 'z')}));
  EXPECT_TRUE(reader.IsComplete());
}

TEST(BodyReader, AShortBodyIsNoticed) {
  BodyWriter writer;
  writer.Int(1).Texts({"one", "two"});
  std::string body = writer.Take();
  for (size_t size = 0; size < body.size(); ++size) {
    std::string part = body.substr(0, size);
    BodyReader reader(part);
    reader.Int();
    reader.Texts();
    EXPECT_FALSE(reader.IsComplete()) << size;
  }
  BodyReader nothing("");
  EXPECT_EQ(nothing.Int(), 0);
  EXPECT_EQ(nothing.Text(), "");
}

}  // namespace
}  // namespace muster::agent::guardian
