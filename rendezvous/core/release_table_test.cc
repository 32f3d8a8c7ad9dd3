#include "rendezvous/core/release_table.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

// Later ones sort before earlier ones, as the random bytes of agents may.
Attach Node(int number) {
  Attach attach;
  attach.incarnation.bytes = {static_cast<uint8_t>(255 - number / 256),
                              static_cast<uint8_t>(255 - number % 256)};
  attach.node_name = "n" + std::to_string(number);
  return attach;
}

Verdict Said(const std::string& reason) {
  Verdict verdict;
  verdict.reason = reason;
  return verdict;
}

TEST(ReleaseTable, ForgetsTheOldest) {
  ReleaseTable table;
  const int most = ReleaseTable::kMostKept;
  for (int i = 0; i < most + 2; ++i) {
    EXPECT_EQ(table.Keep(Node(i), Said(std::to_string(i))).reason, std::to_string(i));
  }
  for (int i : {0, 1}) EXPECT_EQ(table.find(Node(i).incarnation), table.end()) << i;
  for (int i : {2, most, most + 1}) {
    const auto found = table.find(Node(i).incarnation);
    ASSERT_NE(found, table.end()) << i;
    EXPECT_EQ(found->second.reason, std::to_string(i));
  }
}

TEST(ReleaseTable, ALaterWordReplacesTheOneBeforeAndTakesNoPlace) {
  ReleaseTable table;
  for (int i = 0; i < 2000; ++i) table.Keep(Node(1), Said(std::to_string(i)));
  table.Keep(Node(2), Said("other"));
  EXPECT_EQ(table.find(Node(1).incarnation)->second.reason, "1999");
}

TEST(ReleaseTable, NamesWhoStillHostsTheRendezvous) {
  ReleaseTable table;
  table.Keep(Node(1), {});
  EXPECT_EQ(table.host(), std::nullopt);
  Attach host = Node(2);
  host.hosts_rendezvous = true;
  table.Keep(host, {});
  table.Keep(Node(3), {});
  ASSERT_TRUE(table.host().has_value());
  EXPECT_EQ(table.host()->node_name, "n2");
}

}  // namespace
}  // namespace muster::rendezvous
