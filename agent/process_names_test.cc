#include "agent/process_names.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

TEST(ProcessNames, AreThoseOfTheSystem) {
  const std::string own = ProcessNames({getpid()});
  EXPECT_EQ(own, std::to_string(getpid()) + " (process_names_t)");
  // Beyond the largest pid that Linux gives.
  EXPECT_EQ(ProcessNames({99'999'999}), "99999999");
  EXPECT_EQ(ProcessNames({}), "");
}

TEST(ProcessNames, OfManyOnlySome) {
  const std::vector<int64_t> many(10, 99'999'999);
  const std::string text = ProcessNames(many);
  EXPECT_TRUE(text.ends_with(", 99999999 and 2 more")) << text;
}

}  // namespace
}  // namespace muster::agent
