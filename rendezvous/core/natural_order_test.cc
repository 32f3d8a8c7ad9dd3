#include "rendezvous/core/natural_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

TEST(NaturalOrder, PeopleCountThisWay) {
  const std::vector<std::string> in_order = {"",
                                             "7",
                                             "10",
                                             "rack",
                                             "rack1",
                                             "rack2",
                                             "rack2-n1",
                                             "rack2-n003",
                                             "rack2-n12",
                                             "rack10",
                                             "rack10-n1",
                                             "rack99999999999999999999999",
                                             "rack100000000000000000000000",
                                             "sw1/rack3",
                                             "\xc3\xa4"};
  for (size_t i = 0; i < in_order.size(); ++i) {
    for (size_t j = 0; j < in_order.size(); ++j) {
      EXPECT_EQ(NaturalOrder(in_order[i], in_order[j]), i <=> j)
          << in_order[i] << " and " << in_order[j];
    }
  }
}

TEST(NaturalOrder, LeadingZerosDecideLast) {
  EXPECT_EQ(NaturalOrder("n1", "n01"), std::strong_ordering::less);
  EXPECT_EQ(NaturalOrder("n01", "n1"), std::strong_ordering::greater);
  EXPECT_EQ(NaturalOrder("n01a", "n1b"), std::strong_ordering::less);
  EXPECT_EQ(NaturalOrder("n0", "n00"), std::strong_ordering::less);
  EXPECT_EQ(NaturalOrder("a01b1", "a1b01"), std::strong_ordering::less) << "a total order";
  EXPECT_EQ(NaturalOrder("a1b01", "a01b1"), std::strong_ordering::greater);
}

}  // namespace
}  // namespace muster::rendezvous
