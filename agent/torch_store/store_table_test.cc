// The store's rules, a few requests at a time. What PyTorch's own servers answer was looked up with
// theirs (tests/integration/torch_store_test.py asks both the same).
#include "agent/torch_store/store_table.h"

#include <string>
#include <utility>
#include <vector>

#include "agent/torch_store/wire_bytes.h"
#include "gtest/gtest.h"

namespace muster::agent::torch_store {
namespace {

constexpr ConnectionId kA(1), kB(2), kC(3);
const std::string kYes(1, '\0'), kNo(1, '\1');
const std::string kStop = kYes, kCancelled = kNo;

class StoreTableTest : public testing::Test {
 protected:
  using Answers = std::vector<Answer>;

  Answers Ask(ConnectionId connection, Request request) {
    Answers answers;
    EXPECT_EQ(table_.Take(connection, std::move(request), answers), "");
    return answers;
  }
  // The one answer, which is the asker's.
  std::string Reply(ConnectionId connection, Request request) {
    Answers answers = Ask(connection, std::move(request));
    if (answers.size() != 1 || answers[0].connection != connection) return "not one answer";
    return answers[0].bytes;
  }
  std::string Refusal(Request request) {
    Answers answers;
    std::string refusal = table_.Take(kA, std::move(request), answers);
    EXPECT_TRUE(answers.empty());
    return refusal;
  }
  Answers Close(ConnectionId connection) {
    Answers answers;
    table_.Closed(connection, answers);
    return answers;
  }
  std::string ValueOf(const std::string& key) { return Reply(kC, Get{key}).substr(8); }

  StoreTable table_{{.max_total_bytes = 4096, .max_answer_bytes = 1024}};
};

const std::vector<Answer> kNothing;

TEST_F(StoreTableTest, SetsAndGets) {
  EXPECT_EQ(Ask(kA, Set{"k", "v"}), kNothing);
  EXPECT_EQ(Reply(kB, Get{"k"}), Text("v"));
  EXPECT_EQ(Ask(kA, Set{"k", "other"}), kNothing);
  EXPECT_EQ(Reply(kB, Get{"k"}), Text("other"));
  EXPECT_EQ(Reply(kB, Get{"missing"}), Text(""));
}

TEST_F(StoreTableTest, ComparesBeforeItSets) {
  // Of a key that isn't there it tells what was expected.
  EXPECT_EQ(Reply(kA, CompareSet{"k", "wrong", "x"}), Text("wrong"));
  EXPECT_EQ(Reply(kA, CountKeys{}), Eight(0));
  EXPECT_EQ(Reply(kA, CompareSet{"k", "", "first"}), Text("first"));
  EXPECT_EQ(Reply(kA, CompareSet{"k", "wrong", "x"}), Text("first"));
  EXPECT_EQ(Reply(kA, CompareSet{"k", "first", "second"}), Text("second"));
  EXPECT_EQ(ValueOf("k"), "second");
}

TEST_F(StoreTableTest, AddsToNumbersOnly) {
  EXPECT_EQ(Reply(kA, Add{"n", 5}), Eight(5));
  EXPECT_EQ(Reply(kA, Add{"n", -7}), Eight(static_cast<uint64_t>(-2)));
  EXPECT_EQ(ValueOf("n"), "-2");
  Ask(kA, Set{"n", " 40 and more"});
  EXPECT_EQ(Reply(kA, Add{"n", 2}), Eight(42));
  Ask(kA, Set{"n", "9223372036854775807"});
  EXPECT_EQ(Reply(kA, Add{"n", 1}), Eight(uint64_t{1} << 63));
  for (const char* text : {"", "abc", "9223372036854775808"}) {
    Ask(kA, Set{"n", text});
    EXPECT_EQ(Refusal(Add{"n", 1}), "an addition to key \"n\", whose value is no whole number");
    EXPECT_EQ(Refusal(Barrier{"n", 1}), "an addition to key \"n\", whose value is no whole number");
    EXPECT_EQ(ValueOf("n"), text);
  }
}

TEST_F(StoreTableTest, AppendsDeletesCountsAndLists) {
  Ask(kA, Append{"k", "ab"});
  Ask(kB, Append{"k", "cd"});
  EXPECT_EQ(ValueOf("k"), "abcd");
  EXPECT_EQ(Reply(kA, CountKeys{}), Eight(1));
  EXPECT_EQ(Reply(kA, ListKeys{}), Eight(1) + Text("k"));
  EXPECT_EQ(Reply(kA, Delete{"k"}), Eight(1));
  EXPECT_EQ(Reply(kA, Delete{"k"}), Eight(0));
  EXPECT_EQ(Reply(kA, CountKeys{}), Eight(0));
  EXPECT_EQ(Reply(kA, ListKeys{}), Eight(0));
  EXPECT_EQ(table_.total_bytes(), 0u);
}

TEST_F(StoreTableTest, TakesManyAtOnce) {
  Ask(kA, MultiSet{{{"a", "1"}, {"b", "22"}}});
  EXPECT_EQ(Reply(kB, MultiGet{{"b", "missing", "a"}}), Text("22") + Text("") + Text("1"));
  EXPECT_EQ(Reply(kB, Check{{"a", "b"}}), kYes);
  EXPECT_EQ(Reply(kB, Check{{"a", "missing"}}), kNo);
  EXPECT_EQ(Reply(kB, Check{{}}), kYes);
  EXPECT_EQ(Reply(kB, Ping{0x01020304}), "\x04\x03\x02\x01");
}

TEST_F(StoreTableTest, AnswersAWaitAtOnceOrWhenTheLastKeyIsThere) {
  Ask(kA, Set{"a", ""});
  EXPECT_EQ(Reply(kB, Wait{{"a"}}), kStop);
  EXPECT_EQ(Ask(kB, Wait{{"a", "b", "c", "b"}}), kNothing);
  EXPECT_EQ(Ask(kC, Wait{{"b"}}), kNothing);
  EXPECT_EQ(Ask(kA, Set{"b", "1"}), (Answers{{kC, kStop}}));
  // Once it was there; that it went again doesn't count.
  Ask(kA, Delete{"b"});
  EXPECT_EQ(Ask(kA, Set{"c", "1"}), (Answers{{kB, kStop}}));
  EXPECT_EQ(table_.waiting(), 0u);
  EXPECT_EQ(Ask(kA, Set{"c", "2"}), kNothing);
}

TEST_F(StoreTableTest, WakesByWhateverBringsAKey) {
  const std::vector<Request> kBringers = {Set{"k", "1"},          Add{"k", 1},
                                          Append{"k", "1"},       CompareSet{"k", "", "1"},
                                          MultiSet{{{"k", "1"}}}, Barrier{"k", 1}};
  for (const Request& bringer : kBringers) {
    table_.Clear();
    EXPECT_EQ(Ask(kB, Wait{{"k"}}), kNothing);
    EXPECT_EQ(Ask(kC, Wait{{"k"}}), kNothing);
    Answers others = Ask(kA, bringer);
    std::erase_if(others, [](const Answer& answer) { return answer.connection == kA; });
    EXPECT_EQ(others, (Answers{{kB, kStop}, {kC, kStop}})) << bringer.index();
  }
}

TEST_F(StoreTableTest, ForgetsAWaitThatIsGivenUp) {
  const size_t before = table_.total_bytes();
  Ask(kA, Wait{{"k"}});
  EXPECT_EQ(Reply(kA, CancelWait{}), kCancelled);
  // As PyTorch 1.13 does it, without a word.
  Ask(kB, Wait{{"k"}});
  EXPECT_EQ(Reply(kB, CountKeys{}), Eight(0));
  Ask(kC, Wait{{"k"}});
  EXPECT_EQ(Close(kC), kNothing);
  EXPECT_EQ(table_.total_bytes(), before);
  EXPECT_EQ(table_.waiting(), 0u);
  EXPECT_EQ(Ask(kA, Set{"k", "v"}), kNothing);
  EXPECT_EQ(Reply(kA, CancelWait{}), kCancelled);
}

TEST_F(StoreTableTest, HoldsABarrierUntilSoManyHaveCome) {
  EXPECT_EQ(Ask(kA, Barrier{"b", 3}), kNothing);
  EXPECT_EQ(ValueOf("b"), "1");
  EXPECT_EQ(Ask(kB, Barrier{"b", 3}), kNothing);
  EXPECT_EQ(Ask(kC, Barrier{"b", 3}), (Answers{{kC, kStop}, {kA, kStop}, {kB, kStop}}));
  // Who comes late goes through.
  EXPECT_EQ(Reply(kA, Barrier{"b", 3}), kStop);
  // Who gave up has come nevertheless.
  Ask(kA, Barrier{"c", 2});
  EXPECT_EQ(Reply(kA, CancelWait{}), kCancelled);
  EXPECT_EQ(Reply(kB, Barrier{"c", 2}), kStop);
}

TEST_F(StoreTableTest, HandsAQueuesValuesOutInOrder) {
  EXPECT_EQ(Reply(kA, QueueLength{"q"}), Eight(0));
  EXPECT_EQ(Reply(kA, QueuePop{"q"}), Eight(0));
  EXPECT_EQ(Ask(kA, QueuePush{"q", "1"}), kNothing);
  EXPECT_EQ(Ask(kA, QueuePush{"q", "22"}), kNothing);
  EXPECT_EQ(Reply(kA, QueueLength{"q"}), Eight(2));
  EXPECT_EQ(Reply(kA, Check{{"q"}}), kYes);
  EXPECT_EQ(Reply(kA, CountKeys{}), Eight(0));
  EXPECT_EQ(Reply(kA, Delete{"q"}), Eight(0));
  EXPECT_EQ(Reply(kB, QueuePop{"q"}), Eight(2) + Text("1"));
  EXPECT_EQ(Reply(kB, QueuePop{"q"}), Eight(1) + Text("22"));
  EXPECT_EQ(Reply(kB, QueuePop{"q"}), Eight(0));
  EXPECT_EQ(Reply(kA, Check{{"q"}}), kNo);
  EXPECT_EQ(table_.total_bytes(), 0u);
}

TEST_F(StoreTableTest, CallsOneForEachValueOfAQueue) {
  Ask(kA, Wait{{"q"}});
  Ask(kB, Wait{{"q"}});
  EXPECT_EQ(Ask(kC, QueuePush{"q", "1"}), (Answers{{kA, kStop}}));
  EXPECT_EQ(Ask(kC, QueuePush{"q", "2"}), (Answers{{kB, kStop}}));
  EXPECT_EQ(Reply(kA, QueuePop{"q"}), Eight(2) + Text("1"));
  EXPECT_EQ(Reply(kB, QueuePop{"q"}), Eight(1) + Text("2"));
}

TEST_F(StoreTableTest, CallsTheNextIfTheFirstDoesNotCome) {
  for (bool is_closed : {true, false}) {
    table_.Clear();
    Ask(kA, Wait{{"q"}});
    Ask(kB, Wait{{"q"}});
    EXPECT_EQ(Ask(kC, QueuePush{"q", "1"}), (Answers{{kA, kStop}}));
    // Its wait was over in the same moment, or its process is dead.
    const Answers expected = is_closed ? Answers{{kB, kStop}} : Answers{{kB, kStop}, {kA, kNo}};
    EXPECT_EQ(is_closed ? Close(kA) : Ask(kA, CancelWait{}), expected);
    EXPECT_EQ(Reply(kB, QueuePop{"q"}), Eight(1) + Text("1"));
  }
}

TEST_F(StoreTableTest, CountsAQueueAmongOtherKeysOfAWait) {
  Ask(kA, Wait{{"q", "k"}});
  Ask(kB, Wait{{"q"}});
  EXPECT_EQ(Ask(kC, QueuePush{"q", "1"}), (Answers{{kB, kStop}}));
  EXPECT_EQ(Ask(kC, Set{"k", "1"}), (Answers{{kA, kStop}}));
}

TEST_F(StoreTableTest, RefusesWhatIsTooMuchInAll) {
  const std::string kFull = "the store is full (0 MiB)";
  Ask(kA, Set{"k", std::string(3000, 'v')});
  const size_t before = table_.total_bytes();
  EXPECT_EQ(Refusal(Set{"l", std::string(1100, 'v')}), kFull);
  EXPECT_EQ(Refusal(Set{"k", std::string(4100, 'v')}), kFull);
  EXPECT_EQ(Refusal(Append{"k", std::string(1100, 'v')}), kFull);
  EXPECT_EQ(Refusal(CompareSet{"l", "", std::string(1100, 'v')}), kFull);
  EXPECT_EQ(Refusal(QueuePush{"q", std::string(1100, 'v')}), kFull);
  EXPECT_EQ(Refusal(Wait{{std::string(1100, 'k')}}), kFull);
  EXPECT_EQ(Refusal(Add{std::string(1100, 'k'), 1}), kFull);
  EXPECT_EQ(Refusal(Barrier{std::string(1100, 'k'), 1}), kFull);
  EXPECT_EQ(Refusal(MultiGet{{"k"}}), "a request whose answer has 3008 bytes (1024 at most)");
  EXPECT_EQ(table_.total_bytes(), before);
  EXPECT_EQ(Reply(kA, CountKeys{}), Eight(1));
  Ask(kA, Set{"k", ""});
  EXPECT_EQ(Ask(kA, Set{"l", std::string(3000, 'v')}), kNothing);
}

TEST_F(StoreTableTest, BeginsAnew) {
  Ask(kA, Set{"k", "v"});
  Ask(kA, QueuePush{"q", "1"});
  Ask(kB, Wait{{"missing"}});
  table_.Clear();
  EXPECT_EQ(table_.total_bytes(), 0u);
  EXPECT_EQ(Reply(kA, CountKeys{}), Eight(0));
  EXPECT_EQ(Reply(kA, QueueLength{"q"}), Eight(0));
  EXPECT_EQ(Ask(kA, Set{"missing", "v"}), kNothing);
}

}  // namespace
}  // namespace muster::agent::torch_store
