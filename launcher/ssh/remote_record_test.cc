#include "launcher/ssh/remote_record.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
constexpr char kMark[] = "muster-0123-";

struct Seen {
  std::string out;
  std::vector<std::string> records;
};

// Feeds pieces of `size` bytes.
Seen Read(std::string_view stream, size_t size, bool whole_lines) {
  RecordReader reader(kMark, whole_lines);
  Seen seen;
  while (!stream.empty()) {
    reader.Feed(stream.substr(0, size), seen.out, [&](const Record& record) {
      seen.records.push_back(static_cast<char>(record.kind) + record.text);
    });
    stream.remove_prefix(std::min(size, stream.size()));
  }
  reader.End(seen.out);
  return seen;
}

TEST(RemoteRecord, IsFoundBesideOutputHoweverItIsCut) {
  const std::string stream = "one\ntwo" + EncodeRecord(kMark, {RecordKind::kEnded, "3"}) + "mus\n" +
                             EncodeRecord(kMark, {RecordKind::kVerdict, "a\n\\n\nb"}) +
                             "muster-0123";
  for (size_t size = 1; size < stream.size(); ++size) {
    for (bool whole_lines : {false, true}) {
      Seen seen = Read(stream, size, whole_lines);
      EXPECT_EQ(seen.out, std::string("one\ntwomus\nmuster-0123") + (whole_lines ? "\n" : ""));
      EXPECT_THAT(seen.records, ElementsAre("e3", "va\n\\n\nb"));
    }
  }
}

TEST(RemoteRecord, OutputOfSeveralHostsIsWholeLines) {
  RecordReader reader(kMark, true);
  std::string out;
  auto none = [](const Record&) { FAIL(); };
  reader.Feed("one\ntw", out, none);
  EXPECT_EQ(out, "one\n");
  reader.Feed("o\n", out, none);
  EXPECT_EQ(out, "one\ntwo\n");
  reader.Feed(std::string(3 << 20, '\n') + "x", out, none);
  EXPECT_EQ(out.back(), '\n');
  reader.Feed("\n", out, none);
  // But not kept for ever.
  reader.Feed(std::string(2 << 20, 'x'), out, none);
  EXPECT_GT(out.size(), 1U << 20);
}

TEST(RemoteRecord, ARecordWithinALineLeavesTheLineWhole) {
  const std::string alive = EncodeRecord(kMark, {RecordKind::kAlive, ""});
  RecordReader reader(kMark, true);
  std::string out;
  int records = 0;
  auto count = [&records](const Record&) { ++records; };
  reader.Feed("one\ntw" + alive, out, count);
  EXPECT_EQ(out, "one\n");
  reader.Feed("o" + alive + "\nthree", out, count);
  EXPECT_EQ(out, "one\ntwo\n");
  EXPECT_EQ(records, 2);
}

TEST(RemoteRecord, OneThatIsCutIsNoOutput) {
  const std::string record = EncodeRecord(kMark, {RecordKind::kVerdict, "why"});
  for (size_t size = std::string_view(kMark).size(); size < record.size(); ++size) {
    Seen seen = Read("one\ntwo" + record.substr(0, size), 1000, false);
    EXPECT_EQ(seen.out, "one\ntwo");
    EXPECT_THAT(seen.records, testing::IsEmpty());
  }
}

TEST(RemoteRecord, OutputOfOneHostIsShownAtOnce) {
  RecordReader reader(kMark, false);
  std::string out;
  reader.Feed("? ", out, [](const Record&) { FAIL(); });
  EXPECT_EQ(out, "? ");
}

TEST(Greeting, IsALine) {
  const std::string line = EncodeGreeting({.version = "1.2.3", .port = 4711});
  EXPECT_EQ(line.back(), '\n');
  auto greeting = ParseGreeting(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(greeting);
  EXPECT_EQ(greeting->version, "1.2.3");
  EXPECT_EQ(greeting->port, 4711);
  EXPECT_FALSE(ParseGreeting("Welcome to b"));
  EXPECT_FALSE(ParseGreeting("muster remote 1 1.2.3"));
  EXPECT_FALSE(ParseGreeting("muster remote 1 1.2.3 x"));
}

}  // namespace
}  // namespace muster::launcher
