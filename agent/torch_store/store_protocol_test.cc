// Requests as PyTorch's clients send them. The bytes of the tests named after a version were
// recorded from that version's client.
#include "agent/torch_store/store_protocol.h"

#include <string>
#include <vector>

#include "agent/torch_store/wire_bytes.h"
#include "gtest/gtest.h"

namespace muster::agent::torch_store {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

struct Outcome {
  std::vector<Request> requests;
  std::string refusal;
  size_t buffered = 0;
};

Outcome ReadAll(std::string_view bytes, size_t piece = std::string_view::npos) {
  RequestReader reader;
  Outcome outcome;
  while (!bytes.empty()) {
    reader.Append(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (std::optional<Request> request = reader.Next()) outcome.requests.push_back(*request);
  }
  outcome.refusal = reader.refusal();
  outcome.buffered = reader.buffered();
  return outcome;
}

TEST(StoreProtocol, ReadsWhatPyTorch113Sends) {
  const std::string bytes = FromHex(
      "030500000000000000696e69742f0100000000000000"
      "0002000000000000002f6b010000000000000076"
      "05010000000000000002000000000000002f6b"
      "0202000000000000002f6b"
      "0102000000000000002f630000000000000000010000000000000078"
      "06"
      "0802000000000000002f63");
  const std::vector<Request> expected = {
      Add{"init/", 1},           Set{"/k", "v"}, Wait{{"/k"}}, Get{"/k"},
      CompareSet{"/c", "", "x"}, CountKeys{},    Delete{"/c"}};
  EXPECT_EQ(ReadAll(bytes).requests, expected);
  EXPECT_EQ(ReadAll(bytes, 1).requests, expected);
}

TEST(StoreProtocol, ReadsWhatPyTorch215Sends) {
  const std::string bytes = FromHex(
      "00cef7853c0d78090000"
      "040500000000000000696e69742f0100000000000000"
      "0102000000000000002f6b010000000000000076"
      "06010000000000000002000000000000002f6b"
      "0302000000000000002f6b"
      "05020000000000000002000000000000002f6b03000000000000002f7a7a"
      "0202000000000000002f630000000000000000010000000000000078"
      "07"
      "0c"
      "0802000000000000002f63"
      "0903000000000000002f617002000000000000007879"
      "0b020000000000000003000000000000002f6d3101000000000000003103000000000000002f6d32020000000000"
      "00003232"
      "0a020000000000000003000000000000002f6d3103000000000000002f6d32"
      "0e02000000000000002f71010000000000000077"
      "1002000000000000002f71"
      "0f02000000000000002f71"
      "11"
      "1202000000000000002f620200000000000000");
  const std::vector<Request> expected = {Ping{0x978},
                                         Add{"init/", 1},
                                         Set{"/k", "v"},
                                         Wait{{"/k"}},
                                         Get{"/k"},
                                         Check{{"/k", "/zz"}},
                                         CompareSet{"/c", "", "x"},
                                         CountKeys{},
                                         CancelWait{},
                                         Delete{"/c"},
                                         Append{"/ap", "xy"},
                                         MultiSet{{{"/m1", "1"}, {"/m2", "22"}}},
                                         MultiGet{{"/m1", "/m2"}},
                                         QueuePush{"/q", "w"},
                                         QueueLength{"/q"},
                                         QueuePop{"/q"},
                                         ListKeys{},
                                         Barrier{"/b", 2}};
  EXPECT_EQ(ReadAll(bytes).requests, expected);
  EXPECT_EQ(ReadAll(bytes, 1).requests, expected);
}

TEST(StoreProtocol, ReadsWhatOnlyLaterClientsWithoutAGreetingSend) {
  const std::string bytes =
      Byte(9) + Text("a") + Text("1") + Byte(10) + Eight(2) + Text("a") + Text("b") + Byte(12);
  const std::vector<Request> expected = {Append{"a", "1"}, MultiGet{{"a", "b"}}, CancelWait{}};
  EXPECT_EQ(ReadAll(bytes).requests, expected);
}

TEST(StoreProtocol, TakesASetForASetThoughItBeginsLikeAGreeting) {
  // The length of the key has three of the magic number's four bytes.
  EXPECT_EQ(ReadAll(Byte(0) + std::string("\xce\xf7\x85\x00\x00\x00\x00\x00", 8)).refusal,
            "a key of 8779726 bytes (65536 at most)");
  const std::string key(0xce, 'k');
  EXPECT_EQ(ReadAll(Byte(0) + Text(key) + Text("v")).requests,
            (std::vector<Request>{Set{key, "v"}}));
}

TEST(StoreProtocol, KeepsWhatIsNotWholeYet) {
  const std::string whole = Greeting() + Byte(1) + Text("key") + Text("value");
  for (size_t size = 1; size < whole.size(); ++size) {
    Outcome outcome = ReadAll(whole.substr(0, size));
    EXPECT_TRUE(outcome.requests.empty()) << size;
    EXPECT_EQ(outcome.refusal, "") << size;
  }
  EXPECT_EQ(ReadAll(whole).buffered, 0u);
}

TEST(StoreProtocol, ReadsLargeRequestsInPieces) {
  MultiSet request;
  std::string bytes = Greeting() + Byte(11) + Eight(1000);
  for (int i = 0; i < 1000; ++i) {
    request.pairs.emplace_back("key" + std::to_string(i), std::string(i, 'v'));
    bytes += Text(request.pairs.back().first) + Text(request.pairs.back().second);
  }
  EXPECT_EQ(ReadAll(bytes + Byte(7), 1000).requests, (std::vector<Request>{request, CountKeys{}}));
  const std::string value(3 << 20, 'x');
  EXPECT_EQ(ReadAll(Greeting() + Byte(1) + Text("k") + Text(value), 4096).requests,
            (std::vector<Request>{Set{"k", value}}));
}

TEST(StoreProtocol, RefusesWhatIsMalformed) {
  const std::string two_gib = Eight(uint64_t{2} << 30);
  const struct {
    std::string bytes;
    std::string refusal;
  } kCases[] = {
      {"GET / HTTP/1.1\r\n", "an unknown request (71)"},
      {Byte(13), "an unknown request (13)"},
      {Greeting() + Byte(19), "an unknown request (19)"},
      {Greeting() + Greeting(), "a second greeting"},
      {Byte(0) + two_gib, "a key of 2147483648 bytes (65536 at most)"},
      {Greeting() + Byte(1) + Text("k") + two_gib,
       "a value of 2147483648 bytes (67108864 at most)"},
      {Greeting() + Byte(6) + Eight(131073), "a request with 131073 keys (131072 at most)"},
      {Greeting() + Byte(6) + Eight(~uint64_t{0}),
       "a request with 18446744073709551615 keys (131072 at most)"},
      {Greeting() + Byte(9) + Eight(~uint64_t{0}),
       "a key of 18446744073709551615 bytes (65536 at most)"},
      {Byte(7) + Text("k"),
       "a request of PyTorch 2.1, whose store isn't served; give --master-store=worker with that "
       "version"},
      {Byte(11),
       "a request of PyTorch 2.1, whose store isn't served; give --master-store=worker with that "
       "version"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ReadAll(c.bytes).refusal, c.refusal);
    EXPECT_EQ(ReadAll(c.bytes, 1).refusal, c.refusal);
    EXPECT_TRUE(ReadAll(c.bytes).requests.empty()) << c.refusal;
  }
}

TEST(StoreProtocol, RefusesARequestThatIsTooLargeInAll) {
  RequestReader reader;
  reader.Append(Greeting() + Byte(11) + Eight(3));
  const std::string value(kMaxValueBytes, 'v');
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(reader.Next());
    reader.Append(Text("k"));
    reader.Append(Text(value));
  }
  EXPECT_FALSE(reader.Next());
  EXPECT_EQ(reader.refusal(), "a request of more than 134217728 bytes");
}

TEST(StoreProtocol, LooksAtNothingAfterARefusal) {
  RequestReader reader;
  reader.Append(Byte(99));
  EXPECT_FALSE(reader.Next());
  reader.Append(Byte(6));
  EXPECT_FALSE(reader.Next());
  EXPECT_EQ(reader.refusal(), "an unknown request (99)");
}

TEST(StoreProtocol, PutsAnswers) {
  std::string bytes;
  PutNumber(-2, bytes);
  PutText("ab", bytes);
  PutNonce(0x978, bytes);
  EXPECT_EQ(bytes, Eight(~uint64_t{1}) + Text("ab") + std::string("\x78\x09\x00\x00", 4));
}

}  // namespace
}  // namespace muster::agent::torch_store
