#include "rendezvous/core/lease_table.h"

#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

Instant At(int ms) { return Instant(milliseconds(ms)); }
const std::vector<MemberId> kNone;

TEST(LeaseTable, AnEmptyTableHasNoExpiry) {
  LeaseTable leases(milliseconds(3000));
  EXPECT_TRUE(leases.NextExpiry().IsNever());
  EXPECT_EQ(leases.TakeExpired(At(1'000'000)), kNone);
}

TEST(LeaseTable, ALeaseIsOverAtRenewalPlusLengthAndNotBefore) {
  LeaseTable leases(milliseconds(3000));
  leases.Renew(MemberId(1), At(100));
  EXPECT_EQ(leases.NextExpiry(), At(3100));
  EXPECT_EQ(leases.TakeExpired(At(3100) - Duration(1)), kNone);
  EXPECT_EQ(leases.TakeExpired(At(3100)), std::vector<MemberId>{MemberId(1)});
  EXPECT_EQ(leases.TakeExpired(At(9999)), kNone) << "it is taken out once";
}

TEST(LeaseTable, RenewingMovesItBehindTheOthers) {
  LeaseTable leases(milliseconds(3000));
  leases.Renew(MemberId(1), At(0));
  leases.Renew(MemberId(2), At(10));
  leases.Renew(MemberId(1), At(20));
  EXPECT_EQ(leases.NextExpiry(), At(3010));
  EXPECT_EQ(leases.TakeExpired(At(3015)), std::vector<MemberId>{MemberId(2)});
  EXPECT_EQ(leases.NextExpiry(), At(3020));
}

TEST(LeaseTable, SeveralThatAreOverComeLongestSilentFirst) {
  LeaseTable leases(milliseconds(3000));
  leases.Renew(MemberId(3), At(0));
  leases.Renew(MemberId(1), At(10));
  leases.Renew(MemberId(2), At(20));
  EXPECT_EQ(leases.TakeExpired(At(4000)),
            (std::vector<MemberId>{MemberId(3), MemberId(1), MemberId(2)}));
}

TEST(LeaseTable, ADroppedLeaseNeverEnds) {
  LeaseTable leases(milliseconds(3000));
  leases.Renew(MemberId(1), At(0));
  leases.Drop(MemberId(1));
  leases.Drop(MemberId(7));
  EXPECT_EQ(leases.TakeExpired(At(9999)), kNone);
}

TEST(LeaseTable, AfterAStallEveryLeaseStartsAnew) {
  LeaseTable leases(milliseconds(3000));
  leases.Renew(MemberId(1), At(0));
  leases.Renew(MemberId(2), At(500));
  leases.RestartAll(At(10'000));
  EXPECT_EQ(leases.NextExpiry(), At(13'000));
  EXPECT_EQ(leases.TakeExpired(At(12'999)), kNone);
  leases.Renew(MemberId(1), At(12'999));
  EXPECT_EQ(leases.TakeExpired(At(13'000)), std::vector<MemberId>{MemberId(2)});
  EXPECT_EQ(leases.NextExpiry(), At(15'999));
}

}  // namespace
}  // namespace muster::rendezvous
