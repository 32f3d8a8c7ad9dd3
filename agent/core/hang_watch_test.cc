#include "agent/core/hang_watch.h"

#include <vector>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

using Kind = Activity::Kind;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kTimeout(4);

Instant At(int64_t ms) { return Instant(std::chrono::milliseconds(ms)); }

// Ranks 4 and up on this node.
class Watched {
 public:
  explicit Watched(int workers = 2, bool has_other_nodes = false) : watch_(kTimeout) {
    watch_.RoundStarts(
        {.first_rank = Rank(4), .worker_count = workers, .has_other_nodes = has_other_nodes},
        At(0));
  }
  // Looks as often as the machine does, up to `ms`: the first finding, and when.
  std::optional<HangWatch::Finding> Until(int64_t ms) {
    while (now_ <= ms) {
      if (watch_.TakePing(At(now_))) AnswerThePing();
      std::optional<HangWatch::Finding> found = watch_.Check(At(now_));
      if (found) return found;
      now_ += 10;
    }
    return std::nullopt;
  }
  // Answers every ping from now on: of the same thing since `ms`.
  void Does(int local_rank, Kind kind, int64_t since_ms) {
    doing_.push_back({LocalRank(local_rank), kind, since_ms});
  }
  HangWatch* operator->() { return &watch_; }
  int64_t now() const { return now_; }

 private:
  struct Doing {
    LocalRank local_rank;
    Kind kind;
    int64_t since_ms;
  };
  void AnswerThePing() {
    for (const Doing& d : doing_) {
      Activity activity{.kind = d.kind, .lasted = milliseconds(now_ - d.since_ms)};
      watch_.Answered(d.local_rank, activity, At(now_));
    }
  }

  HangWatch watch_;
  std::vector<Doing> doing_;
  int64_t now_ = 0;
};

TEST(HangWatch, AWorkerThatNeverReportedIsNeverHung) {
  Watched watch;
  EXPECT_FALSE(watch.Until(60'000));
}

TEST(HangWatch, NothingHangsWithoutATimeout) {
  HangWatch watch((Duration(0)));
  watch.RoundStarts({.first_rank = Rank(0), .worker_count = 1}, At(0));
  watch.Stepped(LocalRank(0), 1, At(0));
  EXPECT_FALSE(watch.Check(At(1'000'000)));
  EXPECT_FALSE(watch.TakePing(At(1'000'000)));
  EXPECT_TRUE(watch.NextWakeup().IsNever());
}

TEST(HangWatch, NoStepForTheTimeoutIsAHang) {
  Watched watch(1);
  watch->Stepped(LocalRank(0), 7, At(500));
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(watch.now(), 4500);
  EXPECT_EQ(found->local_rank, LocalRank(0));
  EXPECT_EQ(found->last_step, 7);
  EXPECT_EQ(found->evidence, "it completed no step for 4.0 s after step 7 (--hang-timeout=4)");
  // Found once.
  EXPECT_FALSE(watch.Until(60'000));
}

TEST(HangWatch, TheOneThatIsBehindIsToBlame) {
  Watched watch(3);
  watch->Stepped(LocalRank(0), 8, At(500));
  watch->Stepped(LocalRank(1), 7, At(700));
  watch->Stepped(LocalRank(2), 8, At(510));
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->local_rank, LocalRank(1));
  EXPECT_EQ(found->evidence,
            "it completed no step for 3.8 s after step 7 (--hang-timeout=4); ranks 4, 6 got "
            "further and stand still "
            "as well");
}

TEST(HangWatch, AllOfOneStepIsSaid) {
  Watched watch(2, true);
  watch->Stepped(LocalRank(1), 7, At(500));
  watch->Stepped(LocalRank(0), 7, At(501));
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->local_rank, LocalRank(1));
  EXPECT_EQ(found->evidence,
            "it completed no step for 5.0 s after step 7 (--hang-timeout=4); so did rank 4: which "
            "of them hangs can't "
            "be told; it may wait for a rank of another node");
}

TEST(HangWatch, WithOtherNodesASilentProcessIsFoundBeforeThoseThatWaitForIt) {
  // Each watches a node of its own. The rank of `stopped` ends its step 7 with the others, answers
  // once more and stops.
  Watched waiting(1, true);
  Watched stopped(1, true);
  for (Watched* node : {&waiting, &stopped}) {
    (*node)->Stepped(LocalRank(0), 7, At(500));
    (*node)->Answered(LocalRank(0), {}, At(1000));
  }
  ASSERT_TRUE(stopped.Until(60'000));
  EXPECT_EQ(stopped.now(), 5000);
  for (int ms = 2000; ms <= 5000; ms += 1000) {
    ASSERT_FALSE(waiting.Until(ms));
    waiting->Answered(LocalRank(0), {}, At(ms));
  }
  ASSERT_TRUE(waiting.Until(60'000));
  EXPECT_EQ(waiting.now(), 5500);
}

// Two ranks of this node made step 7 at 500 and 510 ms and stand still since: who is blamed, when,
// and is it said that this needn't be the cause.
struct ActivityCase {
  const char* name;
  int64_t found_at_ms;
  int blamed;
  Kind first;
  Kind second;
  bool has_other_nodes;
  bool only_waited;
};

constexpr ActivityCase kActivityCases[] = {
    {"both unknown", 4500, 0, Kind::kUnknown, Kind::kUnknown, false, false},
    {"one in its own code", 4500, 1, Kind::kWaits, Kind::kOwnCode, false, false},
    {"the other in its own code", 4500, 0, Kind::kOwnCode, Kind::kWaits, false, false},
    {"one that can't be asked", 4500, 1, Kind::kWaits, Kind::kUnknown, false, false},
    {"own code beside the unknown", 4500, 1, Kind::kUnknown, Kind::kOwnCode, false, false},
    {"both in their own code", 4500, 0, Kind::kOwnCode, Kind::kOwnCode, false, false},
    {"both wait", 4500, 0, Kind::kWaits, Kind::kWaits, false, true},
    {"both unknown, more nodes", 5500, 0, Kind::kUnknown, Kind::kUnknown, true, false},
    // The first one's time isn't over yet: it waits.
    {"own code, more nodes", 5510, 1, Kind::kWaits, Kind::kOwnCode, true, false},
    {"unknown, more nodes", 5510, 1, Kind::kWaits, Kind::kUnknown, true, false},
    // Five seconds more than the others, since half the timeout is less.
    {"both wait, more nodes", 10500, 0, Kind::kWaits, Kind::kWaits, true, true},
};

TEST(HangWatch, WhoWaitsForNobodyIsBlamedFirstAndWhoWaitsLetsOtherNodesSpeak) {
  for (const ActivityCase& c : kActivityCases) {
    SCOPED_TRACE(c.name);
    Watched watch(2, c.has_other_nodes);
    watch->Stepped(LocalRank(0), 7, At(500));
    watch->Stepped(LocalRank(1), 7, At(510));
    watch.Does(0, c.first, 500);
    watch.Does(1, c.second, 510);
    auto found = watch.Until(60'000);
    ASSERT_TRUE(found);
    EXPECT_EQ(watch.now(), c.found_at_ms);
    EXPECT_EQ(found->local_rank, LocalRank(c.blamed));
    EXPECT_EQ(found->only_waited, c.only_waited);
    EXPECT_EQ(found->last_step, 7);
  }
}

TEST(HangWatch, WhatTheRanksDoIsTheEvidence) {
  Watched watch(4, true);
  for (int i = 0; i < 4; ++i) watch->Stepped(LocalRank(i), i == 0 ? 8 : 7, At(500));
  watch.Does(0, Kind::kUnknown, 0);
  watch.Does(1, Kind::kWaits, 600);
  watch.Does(2, Kind::kOwnCode, 700);
  watch.Does(3, Kind::kWaits, 600);
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->local_rank, LocalRank(2));
  EXPECT_EQ(
      found->evidence,
      "it completed no step for 5.0 s after step 7 (--hang-timeout=4); when last asked it had been "
      "in its own "
      "code, in no collective of the SDK's, for 4.3 s; rank 4 got further and stands still as "
      "well; ranks 5, 7 wait for others");
}

TEST(HangWatch, ThatAllWaitIsSaid) {
  for (bool has_other_nodes : {false, true}) {
    Watched watch(3, has_other_nodes);
    for (int i = 0; i < 3; ++i) {
      watch->Stepped(LocalRank(i), 7, At(500));
      watch.Does(i, Kind::kWaits, 600);
    }
    auto found = watch.Until(60'000);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->evidence,
              has_other_nodes
                  ? "it completed no step for 10.0 s after step 7 (--hang-timeout=4); it waits for "
                    "other ranks, as do "
                    "ranks 5, 6, and no other node has named one that doesn't: they may wait for "
                    "each other, and which of them is the cause can't be told"
                  : "it completed no step for 4.0 s after step 7 (--hang-timeout=4); it waits for "
                    "other ranks, as do "
                    "ranks 5, 6: they may wait for each other, and which of them is the cause "
                    "can't be told");
  }
}

TEST(HangWatch, TheGraceForOtherNodesIsHalfALongTimeout) {
  HangWatch watch(std::chrono::seconds(60));
  watch.RoundStarts({.first_rank = Rank(0), .worker_count = 1, .has_other_nodes = true}, At(0));
  watch.Stepped(LocalRank(0), 1, At(1000));
  const Activity waits{.kind = Kind::kWaits, .lasted = std::chrono::seconds(60)};
  for (int ms = 15'000; ms <= 105'000; ms += 15'000) {
    EXPECT_TRUE(watch.TakePing(At(ms)));
    watch.Answered(LocalRank(0), waits, At(ms));
    EXPECT_FALSE(watch.Check(At(ms)));
  }
  EXPECT_FALSE(watch.Check(At(105'999)));
  EXPECT_EQ(watch.NextWakeup(), At(106'000));
  EXPECT_TRUE(watch.Check(At(106'000)));
}

TEST(HangWatch, AMomentBetweenTwoCollectivesIsNoSign) {
  Watched watch(2);
  watch->Stepped(LocalRank(0), 7, At(500));
  watch->Stepped(LocalRank(1), 7, At(510));
  watch.Does(0, Kind::kUnknown, 0);
  // Its collectives go on: each answer finds it shortly after another one.
  for (int ms = 1000; ms <= 4000; ms += 1000) {
    ASSERT_FALSE(watch.Until(ms - 10));
    watch->Answered(LocalRank(1), Activity{Kind::kOwnCode, milliseconds(999)}, At(ms));
  }
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evidence,
            "it completed no step for 4.0 s after step 7 (--hang-timeout=4); so did rank 5: which "
            "of them hangs can't "
            "be told");
}

TEST(HangWatch, AnAnswerThatTellsNothingChangesNothing) {
  Watched watch(2);
  watch->Stepped(LocalRank(0), 7, At(500));
  watch->Stepped(LocalRank(1), 7, At(510));
  watch.Does(0, Kind::kWaits, 500);
  ASSERT_FALSE(watch.Until(4200));
  watch->Answered(LocalRank(0), {}, At(4200));
  watch->Answered(LocalRank(1), {}, At(4200));
  EXPECT_EQ(watch.Until(60'000)->local_rank, LocalRank(1));
}

TEST(HangWatch, WhoWaitsNoMoreHasNoGrace) {
  Watched watch(1, true);
  watch->Stepped(LocalRank(0), 7, At(500));
  for (int ms = 1000; ms <= 6000; ms += 1000) {
    ASSERT_FALSE(watch.Until(ms - 10));
    watch->Answered(LocalRank(0), Activity{Kind::kWaits, milliseconds(10)}, At(ms));
  }
  ASSERT_FALSE(watch.Until(6990));
  watch->Answered(LocalRank(0), Activity{Kind::kOwnCode, milliseconds(1000)}, At(7000));
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(watch.now(), 7000);
  EXPECT_FALSE(found->only_waited);
}

TEST(HangWatch, OneThatGoesOnIsNotBlamed) {
  Watched watch;
  watch->Stepped(LocalRank(0), 7, At(0));
  watch->Stepped(LocalRank(1), 3, At(0));
  EXPECT_FALSE(watch.Until(3'000));
  watch->Stepped(LocalRank(1), 4, At(3'000));
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->local_rank, LocalRank(0));
  EXPECT_EQ(found->evidence, "it completed no step for 4.0 s after step 7 (--hang-timeout=4)");
}

TEST(HangWatch, AStoppedProcessIsToBlameForThoseThatWaitForIt) {
  Watched watch;
  for (int ms = 1000; ms <= 6000; ms += 1000) {
    watch->Stepped(LocalRank(0), ms / 1000, At(ms));
    watch->Stepped(LocalRank(1), ms / 1000, At(ms));
    watch->Answered(LocalRank(0), {}, At(ms));
    watch->Answered(LocalRank(1), {}, At(ms));
    ASSERT_FALSE(watch.Until(ms));
  }
  // Rank 5 is stopped; rank 4 waits for it and answers.
  for (int ms = 7000; ms <= 9000; ms += 1000) {
    watch->Answered(LocalRank(0), {}, At(ms));
    ASSERT_FALSE(watch.Until(ms));
  }
  watch->Answered(LocalRank(0), {}, At(9900));
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->local_rank, LocalRank(1));
  EXPECT_EQ(found->last_step, 6);
  EXPECT_EQ(found->evidence,
            "its process gave no sign of life for 4.0 s (--hang-timeout=4): it is stopped, or "
            "can't run; its last "
            "step was 6");
}

TEST(HangWatch, WhoHasLeftDoesNotHang) {
  Watched watch;
  watch->Stepped(LocalRank(0), 1, At(0));
  watch->Answered(LocalRank(1), {}, At(0));
  watch->Left(LocalRank(0));
  watch->Left(LocalRank(1));
  EXPECT_FALSE(watch.Until(60'000));
  // A found one that ends by itself makes room for the next.
  Watched other;
  other->Stepped(LocalRank(0), 1, At(0));
  other->Stepped(LocalRank(1), 2, At(0));
  EXPECT_EQ(other.Until(60'000)->local_rank, LocalRank(0));
  other->Left(LocalRank(0));
  EXPECT_EQ(other.Until(60'000)->local_rank, LocalRank(1));
}

TEST(HangWatch, OurOwnAbsenceIsNobodysFault) {
  Watched watch;
  watch->Stepped(LocalRank(0), 1, At(0));
  ASSERT_FALSE(watch.Until(1'000));
  // The machine was suspended for a minute.
  EXPECT_FALSE(watch->Check(At(61'000)));
  EXPECT_FALSE(watch->Check(At(62'000)));
  EXPECT_FALSE(watch->Check(At(63'000)));
  EXPECT_TRUE(watch->Check(At(64'100)));
}

TEST(HangWatch, PingsFourTimesWithinTheTimeout) {
  HangWatch watch(kTimeout);
  watch.RoundStarts({.first_rank = Rank(0), .worker_count = 1}, At(0));
  EXPECT_EQ(watch.NextWakeup(), At(1000));
  EXPECT_FALSE(watch.TakePing(At(999)));
  EXPECT_TRUE(watch.TakePing(At(1000)));
  EXPECT_FALSE(watch.TakePing(At(1001)));
  EXPECT_EQ(watch.NextWakeup(), At(2000));
  watch.Stepped(LocalRank(0), 1, At(1500));
  watch.Stepped(LocalRank(9), 1, At(1500));
  watch.Answered(LocalRank(9), {}, At(1500));
  EXPECT_EQ(watch.NextWakeup(), At(2000));
}

TEST(HangWatch, ManyRanksAreCounted) {
  Watched watch(12);
  for (int i = 0; i < 12; ++i) watch->Stepped(LocalRank(i), 3, At(i));
  EXPECT_EQ(watch.Until(60'000)->evidence,
            "it completed no step for 4.0 s after step 3 (--hang-timeout=4); so did ranks 5, 6, 7, "
            "8, 9, 10, 11, 12 "
            "and 3 more: which of them hangs can't be told");
}

}  // namespace
}  // namespace muster::agent
