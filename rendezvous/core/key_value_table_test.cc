#include "rendezvous/core/key_value_table.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using Waits = std::vector<WaitId>;

Instant At(int ms) { return Instant(milliseconds(ms)); }

TEST(KeyValueTable, WhatIsSetCanBeReadAndReplaced) {
  KeyValueTable table;
  EXPECT_EQ(table.Get("k"), nullptr);
  EXPECT_EQ(table.Set("k", "1").problem, "");
  EXPECT_EQ(*table.Get("k"), "1");
  table.Set("k", "2");
  EXPECT_EQ(*table.Get("k"), "2");
}

TEST(KeyValueTable, SettingAKeyEndsTheWaitsForIt) {
  KeyValueTable table;
  const WaitId first = table.Wait("k", At(100)).wait;
  const WaitId second = table.Wait("k", Instant::Never()).wait;
  const WaitId other = table.Wait("other", At(50)).wait;
  EXPECT_EQ(table.Set("k", "v").ended, (Waits{first, second}));
  EXPECT_EQ(table.Set("k", "w").ended, Waits{}) << "they ended before";
  EXPECT_EQ(table.TakeExpired(At(200)), Waits{other});
}

TEST(KeyValueTable, WaitsEndAtTheirDeadlineEarliestFirst) {
  KeyValueTable table;
  const WaitId late = table.Wait("a", At(300)).wait;
  const WaitId early = table.Wait("b", At(100)).wait;
  EXPECT_EQ(table.NextDeadline(), At(100));
  EXPECT_EQ(table.TakeExpired(At(99)), Waits{});
  EXPECT_EQ(table.TakeExpired(At(300)), (Waits{early, late}));
  EXPECT_TRUE(table.NextDeadline().IsNever());
}

TEST(KeyValueTable, ACancelledWaitIsNeverHeardOfAgain) {
  KeyValueTable table;
  const WaitId wait = table.Wait("k", At(100)).wait;
  table.Cancel(wait);
  table.Cancel(wait);
  EXPECT_EQ(table.Set("k", "v").ended, Waits{});
  EXPECT_EQ(table.TakeExpired(At(1000)), Waits{});
}

TEST(KeyValueTable, TheEndOfTheRoundEndsEveryWait) {
  KeyValueTable table;
  const WaitId key = table.Wait("k", Instant::Never()).wait;
  const WaitId barrier = table.Arrive({"b", "0", 2, At(100)}).wait;
  EXPECT_EQ(table.TakeAll(), (Waits{key, barrier}));
  EXPECT_EQ(table.TakeAll(), Waits{});
}

TEST(KeyValueTable, ABarrierOpensForAllWhenTheLastOneComes) {
  KeyValueTable table;
  const auto first = table.Arrive({"b", "0", 2, At(100)});
  EXPECT_EQ(first.ended, Waits{});
  const auto second = table.Arrive({"b", "1", 2, At(100)});
  EXPECT_EQ(second.ended, (Waits{first.wait, second.wait}));
  EXPECT_EQ(table.TakeExpired(At(100)), Waits{});
}

TEST(KeyValueTable, AParticipantThatRetriesCountsOnce) {
  KeyValueTable table;
  const WaitId lost = table.Arrive({"b", "0", 2, At(10)}).wait;
  EXPECT_EQ(table.TakeExpired(At(10)), Waits{lost});
  const auto retry = table.Arrive({"b", "0", 2, At(50)});
  EXPECT_EQ(retry.ended, Waits{});
  const auto last = table.Arrive({"b", "1", 2, At(50)});
  EXPECT_EQ(last.ended, (Waits{retry.wait, last.wait}));
  const auto late = table.Arrive({"b", "0", 2, At(90)});
  EXPECT_EQ(late.ended, Waits{late.wait}) << "its answer was lost; the barrier stays open";
}

TEST(KeyValueTable, OneWhoseCallIsGoneStillCountsAsArrived) {
  KeyValueTable table;
  table.Cancel(table.Arrive({"b", "0", 2, At(10)}).wait);
  const auto second = table.Arrive({"b", "1", 2, At(10)});
  EXPECT_EQ(second.ended, Waits{second.wait});
}

TEST(KeyValueTable, BarriersThatDisagreeAreRefused) {
  KeyValueTable table;
  EXPECT_EQ(table.Arrive({"b", "0", 0, At(1)}).problem,
            "barrier 'b' needs a count of at least 1, not 0");
  table.Arrive({"b", "0", 2, At(1)});
  EXPECT_EQ(table.Arrive({"b", "1", 3, At(1)}).problem,
            "barrier 'b' is for 2 participants, but 1 came for 3");
}

TEST(KeyValueTable, LimitsAreKeptAndNamed) {
  KeyValueTable table({.max_key_bytes = 4,
                       .max_value_bytes = 4,
                       .max_total_bytes = 12,
                       .max_waits = 1,
                       .max_barriers = 1});
  EXPECT_NE(table.Set("12345", "").problem, "");
  EXPECT_NE(table.Set("k", "12345").problem, "");
  EXPECT_NE(table.Wait("12345", At(1)).problem, "");
  EXPECT_NE(table.Arrive({"12345", "0", 1, At(1)}).problem, "");
  EXPECT_EQ(table.Set("aa", "1234").problem, "");
  EXPECT_EQ(table.Set("bb", "1234").problem, "");
  EXPECT_EQ(table.Set("cc", "").problem,
            "the keys of one round may hold at most 12 bytes; setting 'cc' would pass that");
  EXPECT_EQ(table.Set("bb", "12").problem, "") << "a smaller value makes room";
  EXPECT_EQ(table.Set("cc", "").problem, "");
  EXPECT_EQ(table.Wait("x", At(1)).problem, "");
  EXPECT_NE(table.Wait("y", At(1)).problem, "");
  EXPECT_NE(table.Arrive({"b", "0", 2, At(1)}).problem, "");
  table.TakeAll();
  EXPECT_EQ(table.Arrive({"b", "0", 1, At(1)}).problem, "");
  EXPECT_NE(table.Arrive({"c", "0", 1, At(1)}).problem, "");
}

}  // namespace
}  // namespace muster::rendezvous
