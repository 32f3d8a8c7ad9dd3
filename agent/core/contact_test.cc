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
  contact.Opened(At(10), /*to_own_address=*/true);
  contact.Attached(At(20), lease, Duration(0));
  contact.Allow(Contact::Allowance::kRefusals, At(20));
  return contact;
}

TEST(Contact, TheDeadlineCountsFromTheSendingOfWhatWasAcknowledged) {
  Contact contact = AttachedContact();
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
  ASSERT_EQ(contact.TakeHeartbeat(At(1020)), 1u);
  ASSERT_EQ(contact.TakeHeartbeat(At(2020)), 2u);
  EXPECT_TRUE(contact.Acknowledged(1));
  EXPECT_EQ(contact.deadline(), At(1020 + 2500));
  EXPECT_FALSE(contact.DeadlineIsOver(At(3519)));
  EXPECT_TRUE(contact.DeadlineIsOver(At(3520)));
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

// ---- beyond the lease ----------------------------------------------------------------------

// Every probe from `ms` on is refused at once; when the last one began.
int64_t RefuseProbes(Contact& contact, int64_t ms, int64_t until_ms) {
  int64_t last_probe = -1;
  for (; ms < until_ms; ++ms) {
    if (!contact.TakeProbe(At(ms))) continue;
    last_probe = ms;
    EXPECT_TRUE(contact.Probed(/*is_refused=*/true));
  }
  return last_probe;
}

TEST(Contact, ProbesFollowEachOtherWithin250Ms) {
  Contact contact = AttachedContact();
  EXPECT_FALSE(contact.TakeProbe(At(900)));
  contact.Lost(At(1000));
  EXPECT_TRUE(contact.TakeProbe(At(1000)));
  // One at a time.
  EXPECT_FALSE(contact.TakeProbe(At(1200)));
  contact.Probed(true);
  EXPECT_TRUE(contact.TakeProbe(At(1210)));
  contact.Probed(true);
  EXPECT_FALSE(contact.TakeProbe(At(1250)));
  EXPECT_LE(contact.NextWakeup(), At(1210 + 250));
}

TEST(Contact, TheDeadlineMovesAlongWithRefusedProbes) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  int64_t last_probe = RefuseProbes(contact, 1000, 30'000);
  EXPECT_GT(last_probe, 30'000 - 250);
  EXPECT_EQ(contact.deadline(), At(last_probe + 700));
  EXPECT_EQ(contact.guardian_deadline(), At(last_probe + 950));
}

TEST(Contact, RefusalsMoveTheDeadlineForTheReconnectTimeoutAtMost) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  RefuseProbes(contact, 1000, 60'990);
  EXPECT_EQ(contact.deadline(), At(1000 + 60'000));
}

TEST(Contact, WhoIsAcceptedBeyondTheFirstMomentsLeavesTheRestToTheLease) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  // They were accepted, or nobody answered: the rendezvous may live, and lose us in a moment.
  for (int64_t ms = 1000; ms <= 1080; ms += 20) {
    ASSERT_TRUE(contact.TakeProbe(At(ms))) << ms;
    EXPECT_FALSE(contact.Probed(/*is_refused=*/false));
  }
  EXPECT_EQ(RefuseProbes(contact, 1081, 3000), -1);
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
}

TEST(Contact, AProcessThatIsDyingMayAcceptBeforeItRefuses) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  for (int64_t ms : {1000, 1020, 1040}) {
    ASSERT_TRUE(contact.TakeProbe(At(ms))) << ms;
    EXPECT_FALSE(contact.Probed(/*is_refused=*/false));
  }
  int64_t last_probe = RefuseProbes(contact, 1041, 10'000);
  EXPECT_GT(last_probe, 10'000 - 250);
  EXPECT_EQ(contact.deadline(), At(last_probe + 700));
}

TEST(Contact, AFirstRefusalThatComesLateAfterAnotherAnswerProvesNothing) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  ASSERT_TRUE(contact.TakeProbe(At(1000)));
  EXPECT_FALSE(contact.Probed(/*is_refused=*/false));
  EXPECT_EQ(RefuseProbes(contact, 1090, 3000), -1);
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
}

TEST(Contact, WhoeverWasReachedMayStillAnswerWhenPatienceIsOver) {
  Contact contact(
      {.join_timeout = std::chrono::seconds(600), .reconnect_timeout = std::chrono::seconds(60)},
      At(0));
  contact.Opened(At(599'990), /*to_own_address=*/true);
  EXPECT_EQ(contact.gives_up_at(), At(599'990 + 10'000));
  EXPECT_TRUE(contact.IsUnanswered(At(599'990 + 10'000)));
}

TEST(Contact, AnotherAnswerBetweenRefusalsCostsNothingIfTheNextIsInTime) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  int64_t last_probe = RefuseProbes(contact, 1000, 10'000);
  // A new rendezvous that listens for a moment and dies, say: it was quiet all the time.
  ASSERT_TRUE(contact.TakeProbe(At(last_probe + 260)));
  EXPECT_FALSE(contact.Probed(false));
  EXPECT_EQ(contact.deadline(), At(last_probe + 700));
  ASSERT_TRUE(contact.TakeProbe(At(last_probe + 530)));
  EXPECT_TRUE(contact.Probed(true));
  EXPECT_EQ(contact.deadline(), At(last_probe + 530 + 700));
}

TEST(Contact, AProbeThatComesTooLateProvesNothing) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  int64_t last_probe = RefuseProbes(contact, 1000, 10'000);
  // In between a rendezvous may have come, formed a round without us, and gone.
  EXPECT_FALSE(contact.TakeProbe(At(last_probe + 701)));
  EXPECT_EQ(RefuseProbes(contact, last_probe + 702, last_probe + 3000), -1);
  EXPECT_EQ(contact.deadline(), At(last_probe + 700));
}

TEST(Contact, AnAnswerToAProbeFromBeforeTheLossSaysNothing) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  ASSERT_TRUE(contact.TakeProbe(At(1000)));
  contact.Opened(At(1010), true);
  contact.Attached(At(1020), seconds(3), Duration(0));
  contact.Lost(At(1030));
  EXPECT_FALSE(contact.Probed(true));
  EXPECT_EQ(contact.deadline(), At(1010 + 2500));
  EXPECT_GT(RefuseProbes(contact, 1031, 2000), 1031);
}

TEST(Contact, RefusalsProveNothingOfAVirtualAddress) {
  Contact contact = NewContact();
  contact.Allow(Contact::Allowance::kRefusals, At(20));
  contact.Opened(At(10), /*to_own_address=*/false);
  contact.Attached(At(20), seconds(3), Duration(0));
  contact.Lost(At(1000));
  EXPECT_EQ(RefuseProbes(contact, 1000, 3000), -1);
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
}

TEST(Contact, RefusalsBeforeTheLeaseIsOverDoNotShortenIt) {
  Contact contact = AttachedContact();
  contact.Lost(At(100));
  RefuseProbes(contact, 100, 300);
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
}

TEST(Contact, ContactAgainForgetsTheRefusals) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  RefuseProbes(contact, 1000, 20'000);
  contact.Opened(At(20'310), true);
  contact.Attached(At(20'320), seconds(3), Duration(0));
  EXPECT_EQ(contact.deadline(), At(20'310 + 2500));
  contact.Lost(At(21'000));
  EXPECT_EQ(contact.deadline(), At(20'310 + 2500));
}

TEST(Contact, WithinTheLeaseAloneNothingIsProbed) {
  Contact contact = AttachedContact();
  contact.Allow(Contact::Allowance::kLease, At(20));
  contact.Lost(At(1000));
  EXPECT_EQ(RefuseProbes(contact, 1000, 5000), -1);
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
}

TEST(Contact, WhereTimeAloneCountsTheDeadlineIsRenewedUntilContactIsGivenUpOn) {
  Contact contact = AttachedContact();
  contact.Allow(Contact::Allowance::kReconnectTimeout, At(100));
  // In step with the heartbeats.
  EXPECT_FALSE(contact.TakeRenewal(At(1009)));
  EXPECT_EQ(contact.deadline(), At(10 + 2500));
  EXPECT_TRUE(contact.TakeHeartbeat(At(1010)));
  EXPECT_TRUE(contact.TakeRenewal(At(1010)));
  EXPECT_EQ(contact.deadline(), At(1010 + 2500));
  // The lease tells when the stream is dead.
  EXPECT_FALSE(contact.IsSilent(At(2509)));
  EXPECT_TRUE(contact.IsSilent(At(2510)));
  contact.Lost(At(2510));
  EXPECT_EQ(RefuseProbes(contact, 2510, 5000), -1);
  // A frozen agent is noticed as soon as ever.
  EXPECT_TRUE(contact.TakeRenewal(At(5000)));
  EXPECT_EQ(contact.deadline(), At(5000 + 2500));
  EXPECT_EQ(contact.guardian_deadline(), At(5000 + 2750));
  EXPECT_EQ(contact.NextWakeup(), At(2510));
  EXPECT_TRUE(contact.TakeRenewal(At(62'000)));
  EXPECT_EQ(contact.deadline(), At(2510 + 60'000));
}

TEST(Contact, WhatIsAllowedTooLateDoesNotRaiseTheDead) {
  Contact contact = AttachedContact();
  contact.Lost(At(1000));
  contact.Allow(Contact::Allowance::kReconnectTimeout, At(2510));
  EXPECT_TRUE(contact.DeadlineIsOver(At(2510)));
}

TEST(Contact, AClosedStreamDoesNotShortenWhatWorkersMay) {
  Contact contact = AttachedContact();
  contact.Allow(Contact::Allowance::kReconnectTimeout, At(100));
  contact.Lost(At(1000));
  contact.Closed(At(1100));
  EXPECT_TRUE(contact.TakeRenewal(At(2000)));
  EXPECT_EQ(contact.deadline(), At(2000 + 2500));
}

// ---- tries ---------------------------------------------------------------------------------

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
  contact.Opened(At(10), true);
  contact.Attached(At(20), seconds(3), seconds(40));
  EXPECT_TRUE(contact.gives_up_at().IsNever());
  contact.Lost(At(1000));
  EXPECT_EQ(contact.gives_up_at(), At(41'000));
  // A stream that opens without an answer is no contact.
  contact.Opened(At(2000), true);
  contact.Lost(At(3000));
  EXPECT_EQ(contact.gives_up_at(), At(41'000));
}

TEST(Contact, ARendezvousThatComesBackWithAShorterLeaseShortensTheDeadline) {
  for (Contact::Allowance allowance :
       {Contact::Allowance::kLease, Contact::Allowance::kReconnectTimeout}) {
    Contact contact = AttachedContact(seconds(30));
    contact.Allow(allowance, At(30));
    EXPECT_EQ(contact.deadline(), At(10 + 29'500));
    contact.Lost(At(1000));
    ASSERT_TRUE(contact.TakeRetry(At(1000)));
    contact.Opened(At(1100), true);
    contact.Attached(At(1100), seconds(3), Duration(0));
    EXPECT_EQ(contact.deadline(), At(1100 + 2500));
  }
}

TEST(Contact, NothingIsDueWhileClosed) {
  Contact contact = AttachedContact();
  contact.Allow(Contact::Allowance::kLease, At(20));
  contact.Closed(At(100));
  EXPECT_TRUE(contact.NextWakeup().IsNever());
  EXPECT_FALSE(contact.TakeRetry(At(5000)));
  contact.Reopen(At(5000));
  EXPECT_TRUE(contact.TakeRetry(At(5000)));
}

}  // namespace
}  // namespace muster::agent
