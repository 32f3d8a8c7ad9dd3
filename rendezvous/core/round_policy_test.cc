#include "rendezvous/core/round_policy.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

Instant At(int ms) { return Instant(milliseconds(ms)); }

// MIN:MAX = 2:4, last call 5 s, MIN first reached at 1 s, now 2 s.
RoundQuestion Base(int ready) {
  RoundQuestion question;
  question.now = At(2000);
  question.min_nodes = 2;
  question.max_nodes = 4;
  question.ready_nodes = ready;
  question.min_first_reached = At(1000);
  question.last_call_timeout = milliseconds(5000);
  return question;
}

TEST(RoundPolicy, BelowMinItWaitsForMoreNodes) {
  const RoundAnswer answer = MayCloseRound(Base(1));
  EXPECT_FALSE(answer.may_close);
  EXPECT_TRUE(answer.ask_again.IsNever());
  EXPECT_EQ(answer.reason, "waiting for 1 more node (1 of 2..4 nodes is here)");
  EXPECT_EQ(MayCloseRound(Base(0)).reason, "waiting for 2 more nodes (0 of 2..4 nodes are here)");
}

TEST(RoundPolicy, ClosesAtOnceWhenMaxIsReached) {
  EXPECT_TRUE(MayCloseRound(Base(4)).may_close);
  EXPECT_TRUE(MayCloseRound(Base(9)).may_close) << "the rest are spares";
}

TEST(RoundPolicy, BetweenMinAndMaxTheLastCallDecides) {
  RoundQuestion question = Base(3);
  RoundAnswer answer = MayCloseRound(question);
  EXPECT_FALSE(answer.may_close);
  EXPECT_EQ(answer.ask_again, At(6000)) << "counted from when MIN was first reached";
  EXPECT_EQ(answer.reason, "3 of 2..4 nodes are here; waiting at most 5 s for more");
  question.now = At(5999);
  EXPECT_FALSE(MayCloseRound(question).may_close);
  question.now = At(6000);
  EXPECT_TRUE(MayCloseRound(question).may_close);
}

TEST(RoundPolicy, AfterALossTheSurvivorsDoNotWaitForALastCall) {
  RoundQuestion question = Base(3);
  question.is_reforming = true;
  EXPECT_TRUE(MayCloseRound(question).may_close);
  question.returning_nodes = 1;
  RoundAnswer answer = MayCloseRound(question);
  EXPECT_FALSE(answer.may_close);
  EXPECT_EQ(answer.reason, "3 of 2..4 nodes are here; 1 may still come back");
  question.ready_nodes = 4;
  EXPECT_TRUE(MayCloseRound(question).may_close)
      << "nobody is waited for when all places are taken";
}

TEST(RoundPolicy, NothingClosesWhileARestartedRendezvousListens) {
  for (int ready : {2, 4}) {
    RoundQuestion question = Base(ready);
    question.quiet_until = At(2500);
    question.is_reforming = true;
    const RoundAnswer answer = MayCloseRound(question);
    EXPECT_FALSE(answer.may_close) << ready;
    EXPECT_EQ(answer.ask_again, At(2500)) << ready;
    question.now = At(2500);
    EXPECT_TRUE(MayCloseRound(question).may_close) << ready;
  }
}

TEST(RoundPolicy, NodeRangesReadWell) {
  EXPECT_EQ(NodeRange(1, 1), "1 node");
  EXPECT_EQ(NodeRange(3, 3), "3 nodes");
  EXPECT_EQ(NodeRange(2, 4), "2..4 nodes");
}

}  // namespace
}  // namespace muster::rendezvous
