#include "launcher/descriptor_need.h"

#include <fcntl.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;

std::optional<std::string> Judge(int workers, uint64_t limit, const RunOptions& options = {}) {
  LaunchPlan plan;
  plan.worker_count = workers;
  return TooFewDescriptors(options, plan, {.limit = limit, .open_count = 10});
}

TEST(DescriptorNeed, GrowsWithTheWorkers) {
  EXPECT_EQ(Judge(8, 1024), std::nullopt);
  EXPECT_EQ(Judge(8, 82), std::nullopt);
  EXPECT_THAT(Judge(8, 81).value_or(""),
              HasSubstr("(81) is too low for 8 workers, which need about 82"));
  EXPECT_THAT(Judge(300, 1024).value_or(""), HasSubstr("`ulimit -Hn`"));
  EXPECT_THAT(Judge(1, 20).value_or(""), HasSubstr("for 1 worker,"));
}

TEST(DescriptorNeed, CountsTheFilesOfTeeAndRedirects) {
  RunOptions options;
  options.tee.of_all = 3;
  options.redirects.by_local_rank = {{0, 1}};
  EXPECT_EQ(Judge(8, 98, options), std::nullopt);
  EXPECT_NE(Judge(8, 97, options), std::nullopt);
}

TEST(DescriptorNeed, CountsWhatIsOpen) {
  DescriptorFacts before = LookUpDescriptors();
  EXPECT_GT(before.limit, 0U);
  int fd = open("/dev/null", O_RDONLY);
  EXPECT_EQ(LookUpDescriptors().open_count, before.open_count + 1);
  close(fd);
}

}  // namespace
}  // namespace muster::launcher
