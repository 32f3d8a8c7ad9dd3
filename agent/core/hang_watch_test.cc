#include "agent/core/hang_watch.h"

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

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
      watch_.TakePing(At(now_));
      std::optional<HangWatch::Finding> found = watch_.Check(At(now_));
      if (found) return found;
      now_ += 10;
    }
    return std::nullopt;
  }
  HangWatch* operator->() { return &watch_; }
  int64_t now() const { return now_; }

 private:
  HangWatch watch_;
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
  EXPECT_EQ(found->evidence, "it completed no step for 4.0 s after step 7");
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
            "it completed no step for 3.8 s after step 7; ranks 4, 6 got further and stand still "
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
            "it completed no step for 5.0 s after step 7; so did rank 4: which of them hangs can't "
            "be told; it may wait for a rank of another node");
}

TEST(HangWatch, WithOtherNodesASilentProcessIsFoundBeforeThoseThatWaitForIt) {
  // Each watches a node of its own. The rank of `stopped` ends its step 7 with the others, answers
  // once more and stops.
  Watched waiting(1, true);
  Watched stopped(1, true);
  for (Watched* node : {&waiting, &stopped}) {
    (*node)->Stepped(LocalRank(0), 7, At(500));
    (*node)->Answered(LocalRank(0), At(1000));
  }
  ASSERT_TRUE(stopped.Until(60'000));
  EXPECT_EQ(stopped.now(), 5000);
  for (int ms = 2000; ms <= 5000; ms += 1000) {
    ASSERT_FALSE(waiting.Until(ms));
    waiting->Answered(LocalRank(0), At(ms));
  }
  ASSERT_TRUE(waiting.Until(60'000));
  EXPECT_EQ(waiting.now(), 5500);
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
  EXPECT_EQ(found->evidence, "it completed no step for 4.0 s after step 7");
}

TEST(HangWatch, AStoppedProcessIsToBlameForThoseThatWaitForIt) {
  Watched watch;
  for (int ms = 1000; ms <= 6000; ms += 1000) {
    watch->Stepped(LocalRank(0), ms / 1000, At(ms));
    watch->Stepped(LocalRank(1), ms / 1000, At(ms));
    watch->Answered(LocalRank(0), At(ms));
    watch->Answered(LocalRank(1), At(ms));
    ASSERT_FALSE(watch.Until(ms));
  }
  // Rank 5 is stopped; rank 4 waits for it and answers.
  for (int ms = 7000; ms <= 9000; ms += 1000) {
    watch->Answered(LocalRank(0), At(ms));
    ASSERT_FALSE(watch.Until(ms));
  }
  watch->Answered(LocalRank(0), At(9900));
  auto found = watch.Until(60'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->local_rank, LocalRank(1));
  EXPECT_EQ(found->last_step, 6);
  EXPECT_EQ(found->evidence,
            "its process gave no sign of life for 4.0 s: it is stopped, or can't run; its last "
            "step was 6");
}

TEST(HangWatch, WhoHasLeftDoesNotHang) {
  Watched watch;
  watch->Stepped(LocalRank(0), 1, At(0));
  watch->Answered(LocalRank(1), At(0));
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
  watch.Answered(LocalRank(9), At(1500));
  EXPECT_EQ(watch.NextWakeup(), At(2000));
}

TEST(HangWatch, ManyRanksAreCounted) {
  Watched watch(12);
  for (int i = 0; i < 12; ++i) watch->Stepped(LocalRank(i), 3, At(i));
  EXPECT_EQ(watch.Until(60'000)->evidence,
            "it completed no step for 4.0 s after step 3; so did ranks 5, 6, 7, 8, 9, 10, 11, 12 "
            "and 3 more: which of them hangs can't be told");
}

}  // namespace
}  // namespace muster::agent
