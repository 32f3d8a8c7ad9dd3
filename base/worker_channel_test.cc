#include "base/worker_channel.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::worker_channel {
namespace {

Welcome FullWelcome() {
  Welcome welcome;
  welcome.world.round = RoundId(7);
  welcome.world.id.bytes.fill(0xab);
  welcome.key.bytes.fill(0xcd);
  welcome.rank = Rank(3);
  welcome.world_size = 5;
  welcome.local_rank = LocalRank(1);
  welcome.local_world_size = 2;
  welcome.address = "10.0.0.7";
  welcome.attempt = 6;
  welcome.restarts_charged = 4;
  welcome.resume = Commit{1000, "/checkpoints/step-1000"};
  return welcome;
}

// One of each type, extreme values among them.
std::vector<Message> AllMessages() {
  Welcome no_resume = FullWelcome();
  no_resume.resume.reset();
  Abort abort;
  abort.world_id.bytes.fill(0x11);
  abort.culprit = Rank(2);
  abort.reason = "node b was lost";
  return {
      Hello{"0123/7/1", 4711, "0.1"},
      Hello{"", -1, ""},
      SetKey{UINT64_MAX, "key", std::string("nul \0 inside", 12)},
      GetKey{1, "key", INT64_MIN},
      ShardDone{2, 16, {INT64_MAX, "/c"}},
      CommitPublished{3, {0, ""}},
      FullWelcome(),
      no_resume,
      Answer{4, 10, "the round is over", "value"},
      abort,
      Abort{},
      StepDone{INT64_MAX},
      StepDone{0, true},
      CheckpointKnown{7},
      AnnounceCheckpoint{5, 40},
      Pong{UINT64_MAX, {}},
      Pong{3, {Activity::Kind::kWaits, Duration(INT64_MAX)}},
      CheckpointWanted{},
      CheckpointAt{41},
      Ping{6},
  };
}

TEST(WorkerChannel, EveryMessageSurvivesARoundTrip) {
  for (const Message& message : AllMessages()) {
    std::string frame = Encode(message);
    Decoded decoded = Decode(frame + "next frame");
    ASSERT_EQ(decoded.kind, Decoded::Kind::kMessage) << decoded.problem;
    EXPECT_EQ(decoded.consumed, frame.size());
    EXPECT_EQ(decoded.message, message) << "type " << message.index();
  }
}

TEST(WorkerChannel, ThreeFieldTypesHaveTheBytesThatTheHeaderSays) {
  std::string frame = Encode(GetKey{0x0102030405060708, "ab", 1});
  EXPECT_EQ(frame, std::string("\x18\0\0\0"  // length of what follows
                               "\x02\x03"    // version, type
                               "\x08\x07\x06\x05\x04\x03\x02\x01"
                               "\x02\0\0\0ab"
                               "\x01\0\0\0\0\0\0\0",
                               28));
}

TEST(WorkerChannel, AnyPartOfAFrameNeedsMore) {
  for (const Message& message : AllMessages()) {
    std::string frame = Encode(message);
    for (size_t size = 0; size < frame.size(); ++size) {
      Decoded decoded = Decode(std::string_view(frame).substr(0, size));
      EXPECT_EQ(decoded.kind, Decoded::Kind::kNeedMore) << "cut at " << size;
    }
  }
}

TEST(WorkerChannel, AFrameThatSaysItEndsEarlyIsMalformed) {
  for (const Message& message : AllMessages()) {
    std::string frame = Encode(message);
    for (size_t size = 4; size < frame.size(); ++size) {
      std::string cut = frame.substr(0, size);
      size_t length = size - 4;
      cut[0] = static_cast<char>(length & 0xff);
      cut[1] = static_cast<char>(length >> 8);
      EXPECT_EQ(Decode(cut).kind, Decoded::Kind::kMalformed) << "cut at " << size;
    }
  }
}

TEST(WorkerChannel, AByteTooManyIsMalformed) {
  for (const Message& message : AllMessages()) {
    std::string frame = Encode(message) + 'x';
    frame[0] = static_cast<char>(frame[0] + 1);
    EXPECT_EQ(Decode(frame).kind, Decoded::Kind::kMalformed) << "type " << message.index();
  }
}

TEST(WorkerChannel, OversizeUnknownTypeAndVersionAreRefusedBeforeTheirBytesCome) {
  std::string oversize("\x00\x00\x20\x00", 4);  // 2 MiB of fields: with the length it is over
  EXPECT_EQ(Decode(oversize).kind, Decoded::Kind::kMalformed);
  EXPECT_EQ(Decode(std::string("\xff\xff\xff\xff", 4)).kind, Decoded::Kind::kMalformed);
  EXPECT_EQ(Decode(std::string("\x01\0\0\0", 4)).kind, Decoded::Kind::kMalformed);
  EXPECT_EQ(Decode(std::string("\x20\0\0\0\x01", 5)).kind, Decoded::Kind::kMalformed);
  EXPECT_EQ(Decode(std::string("\x20\0\0\0\x02\x00", 6)).kind, Decoded::Kind::kMalformed);
  EXPECT_EQ(Decode(std::string("\x20\0\0\0\x02\x10", 6)).kind, Decoded::Kind::kMalformed);
}

TEST(WorkerChannel, TheLargestValueOfTheTableFits) {
  std::string frame = Encode(SetKey{1, std::string(1024, 'k'), std::string(1 << 20, 'v')});
  EXPECT_LE(frame.size(), kMaxFrame);
  EXPECT_EQ(Decode(frame).kind, Decoded::Kind::kMessage);
}

TEST(WorkerChannel, AFlagThatIsNeitherYesNorNoIsMalformed) {
  Welcome welcome = FullWelcome();
  welcome.resume.reset();
  std::string frame = Encode(welcome);
  frame.back() = 2;
  EXPECT_EQ(Decode(frame).kind, Decoded::Kind::kMalformed);
}

TEST(WorkerChannel, AnActivityThatNobodyKnowsIsMalformed) {
  std::string frame = Encode(Pong{1, {}});
  // Before it the length, version, type and number.
  frame[4 + 2 + 8] = 3;
  EXPECT_EQ(Decode(frame).kind, Decoded::Kind::kMalformed);
}

TEST(WorkerChannel, DamagedFramesNeverCrashAndWhatDecodesEncodesToTheSameBytes) {
  std::mt19937 random(1);
  std::vector<Message> messages = AllMessages();
  int decoded_count = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string frame = Encode(messages[random() % messages.size()]);
    for (unsigned hits = 1 + random() % 4; hits > 0; --hits) {
      frame[random() % frame.size()] = static_cast<char>(random());
    }
    Decoded decoded = Decode(frame);
    if (decoded.kind != Decoded::Kind::kMessage) continue;
    ++decoded_count;
    EXPECT_EQ(Encode(decoded.message), frame.substr(0, decoded.consumed));
  }
  EXPECT_GT(decoded_count, 0);
}

}  // namespace
}  // namespace muster::worker_channel
