#include "agent/core/contact.h"

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Instant At(int64_t ms) { return Instant(milliseconds(ms)); }

Contact NewContact() {
  return Contact({.join_timeout = seconds(600), .reconnect_timeout = seconds(60)}, At(0));
}

Contact AttachedContact(Duration lease = seconds(3)) {
  Contact contact = NewContact();
  contact.Opened(At(10));
  contact.Attached(At(20), lease, Duration(0));
  return contact;
}

TEST(Contact, TheDeadlineCountsFromTheSendingOfWhatWasAcknowledged) {
  Contact contact = AttachedContact();
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
  ASSERT_EQ(contact.TakeHeartbeat(At(1020)), 1u);
  ASSERT_EQ(contact.TakeHeartbeat(At(2020)), 2u);
  EXPECT_TRUE(contact.Acknowledged(1));
  EXPECT_EQ(contact.deadline(), At(1020 + 2500));
  EXPECT_FALSE(contact.LeaseIsOver(At(3519)));
  EXPECT_TRUE(contact.LeaseIsOver(At(3520)));
}

TEST(Contact, OneAcknowledgementStandsForThoseBefore) {
  Contact contact = AttachedContact();
  contact.TakeHeartbeat(At(1020));
  contact.TakeHeartbeat(At(2020));
  EXPECT_TRUE(contact.Acknowledged(2));
  EXPECT_EQ(contact.deadline(), At(2020 + 2500));
  EXPECT_FALSE(contact.Acknowledged(1));
}

TEST(Contact, NumbersThatWereNeverSentAcknowledgeNothing) {
  Contact contact = AttachedContact();
  contact.TakeHeartbeat(At(1020));
  EXPECT_FALSE(contact.Acknowledged(2));
  EXPECT_EQ(contact.deadline(), At(2510));
}

TEST(Contact, AShortLeaseKeepsThreeQuarters) {
  EXPECT_EQ(AttachedContact(seconds(1)).deadline(), At(10 + 750));
}

TEST(Contact, AHeartbeatIsDueEveryThirdOfTheLease) {
  Contact contact = AttachedContact();
  // The first counts from the sending of Attach.
  EXPECT_FALSE(contact.TakeHeartbeat(At(1009)));
  EXPECT_TRUE(contact.TakeHeartbeat(At(1010)));
  EXPECT_FALSE(contact.TakeHeartbeat(At(1011)));
  EXPECT_EQ(contact.NextWakeup(), At(2010));
}

TEST(Contact, TheGuardiansDeadlineIsBetweenOursAndTheLeasesEnd) {
  EXPECT_EQ(AttachedContact().guardian_deadline(), At(10 + 2750));
}

// Contact is lost at `ms`; every try after is refused until `until_ms`.
int64_t RefuseTries(Contact& contact, int64_t ms, int64_t until_ms) {
  contact.Lost(At(ms));
  int64_t last_try = 0;
  for (; ms < until_ms; ++ms) {
    if (!contact.TakeRetry(At(ms))) continue;
    last_try = ms;
    contact.Lost(At(ms + 1), /*is_refused=*/true);
  }
  return last_try;
}

TEST(Contact, TheDeadlineMovesAlongWithRefusedTries) {
  Contact contact = AttachedContact();
  int64_t last_try = RefuseTries(contact, 1000, 30'000);
  EXPECT_GT(last_try, 30'000 - 260);
  EXPECT_EQ(contact.deadline(), At(last_try + 700));
  EXPECT_EQ(contact.guardian_deadline(), At(last_try + 950));
}

TEST(Contact, RefusalsMoveTheDeadlineForTheReconnectTimeoutAtMost) {
  Contact contact = AttachedContact();
  RefuseTries(contact, 1000, 60'990);
  EXPECT_EQ(contact.deadline(), At(1000 + 60'000));
}

TEST(Contact, AnotherFailureBetweenRefusalsCostsNothingIfTheNextIsInTime) {
  Contact contact = AttachedContact();
  int64_t last_try = RefuseTries(contact, 1000, 10'000);
  // The dying process still held its socket, say: reset.
  ASSERT_TRUE(contact.TakeRetry(At(last_try + 260)));
  contact.Lost(At(last_try + 270));
  EXPECT_EQ(contact.deadline(), At(last_try + 700));
  ASSERT_TRUE(contact.TakeRetry(At(last_try + 530)));
  contact.Lost(At(last_try + 531), /*is_refused=*/true);
  EXPECT_EQ(contact.deadline(), At(last_try + 530 + 700));
}

TEST(Contact, ARefusalThatComesTooLateProvesNothing) {
  Contact contact = AttachedContact();
  int64_t last_try = RefuseTries(contact, 1000, 10'000);
  ASSERT_TRUE(contact.TakeRetry(At(last_try + 300)));
  // In between a rendezvous may have come, formed a round without us, and gone.
  contact.Lost(At(last_try + 701), /*is_refused=*/true);
  EXPECT_EQ(contact.deadline(), At(last_try + 700));
  ASSERT_TRUE(contact.TakeRetry(At(last_try + 1000)));
  contact.Lost(At(last_try + 1001), /*is_refused=*/true);
  EXPECT_EQ(contact.deadline(), At(last_try + 700));
}

TEST(Contact, RefusalsBeforeTheLeaseIsOverDoNotShortenIt) {
  Contact contact = AttachedContact();
  RefuseTries(contact, 100, 300);
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
}

TEST(Contact, ContactAgainForgetsTheRefusals) {
  Contact contact = AttachedContact();
  RefuseTries(contact, 1000, 20'000);
  ASSERT_TRUE(contact.TakeRetry(At(20'300)));
  contact.Opened(At(20'310));
  contact.Attached(At(20'320), seconds(3), Duration(0));
  EXPECT_EQ(contact.deadline(), At(20'310 + 2500));
}

TEST(Contact, TriesAtOnceAfterALossThenBacksOff) {
  Contact contact = AttachedContact();
  contact.Lost(At(100));
  EXPECT_TRUE(contact.TakeRetry(At(100)));
  contact.Lost(At(101));
  EXPECT_FALSE(contact.TakeRetry(At(101)));
  EXPECT_TRUE(contact.TakeRetry(At(151)));
  for (int i = 0; i < 10; ++i) contact.Lost(At(200));
  EXPECT_FALSE(contact.TakeRetry(At(200 + 180)));
  EXPECT_TRUE(contact.TakeRetry(At(200 + 250)));
}

TEST(Contact, BeforeTheFirstContactItBacksOffFromTheStart) {
  Contact contact = NewContact();
  contact.Lost(At(0));
  EXPECT_FALSE(contact.TakeRetry(At(30)));
  EXPECT_TRUE(contact.TakeRetry(At(50)));
}

TEST(Contact, PatienceIsTheJoinTimeoutFirstAndTheReconnectTimeoutLater) {
  Contact contact = NewContact();
  EXPECT_EQ(contact.gives_up_at(), At(600'000));
  contact.Opened(At(10));
  contact.Attached(At(20), seconds(3), seconds(40));
  EXPECT_TRUE(contact.gives_up_at().IsNever());
  contact.Lost(At(1000));
  EXPECT_EQ(contact.gives_up_at(), At(41'000));
  // A stream that opens without an answer is no contact.
  contact.Opened(At(2000));
  contact.Lost(At(3000));
  EXPECT_EQ(contact.gives_up_at(), At(41'000));
}

TEST(Contact, NothingIsDueWhileClosed) {
  Contact contact = AttachedContact();
  contact.Closed(At(100));
  EXPECT_TRUE(contact.NextWakeup().IsNever());
  EXPECT_FALSE(contact.TakeRetry(At(5000)));
  contact.Reopen(At(5000));
  EXPECT_TRUE(contact.TakeRetry(At(5000)));
}

}  // namespace
}  // namespace muster::agent
