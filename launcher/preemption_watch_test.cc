#include "launcher/preemption_watch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

constexpr std::chrono::seconds kPatience(20);

class PreemptionWatchTest : public testing::Test {
 protected:
  PreemptionWatchTest() {
    std::string pattern = testing::TempDir() + "preemption-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~PreemptionWatchTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<PreemptionWatch> Watch(const std::string& name) {
    auto watch = PreemptionWatch::Start(folder_ + "/" + name, [this] { noticed_.set_value(); });
    EXPECT_TRUE(watch.ok()) << watch.status();
    return watch.ok() ? *std::move(watch) : nullptr;
  }
  bool IsNoticed() {
    return noticed_.get_future().wait_for(kPatience) == std::future_status::ready;
  }
  void Make(const std::string& name) { std::ofstream(folder_ + "/" + name) << "gone soon\n"; }

  std::string folder_;
  std::promise<void> noticed_;
};

TEST_F(PreemptionWatchTest, AFileThatAppearsIsANotice) {
  auto watch = Watch("notice");
  Make("another");
  Make("notice");
  EXPECT_TRUE(IsNoticed());
  Make("notice");  // no second call: the promise would throw
}

TEST_F(PreemptionWatchTest, SoIsOneThatIsRenamedIntoPlace) {
  auto watch = Watch("notice");
  Make("notice.tmp");
  std::filesystem::rename(folder_ + "/notice.tmp", folder_ + "/notice");
  EXPECT_TRUE(IsNoticed());
}

TEST_F(PreemptionWatchTest, OneThatIsThereAlreadyIsLeftOver) {
  Make("notice");
  auto watch = PreemptionWatch::Start(folder_ + "/notice", [] {});
  EXPECT_EQ(watch.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(watch.status().message(),
            "stopped before the job had begun by preemption notice " + folder_ +
                "/notice, left over from before this start: remove the file before the node is "
                "started again");
}

TEST_F(PreemptionWatchTest, EndsWhereNothingCame) {
  auto watch = Watch("notice");
  watch.reset();
  EXPECT_NE(noticed_.get_future().wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

TEST_F(PreemptionWatchTest, AFolderIsNoNotice) {
  auto watch = PreemptionWatch::Start(folder_, [] {});
  ASSERT_FALSE(watch.ok());
  EXPECT_EQ(watch.status().message(), "--preemption-file=" + folder_ +
                                          " is a folder, and would be a notice at once; name a "
                                          "file in it");
}

TEST_F(PreemptionWatchTest, AFolderThatIsMissingIsSaid) {
  auto watch = PreemptionWatch::Start(folder_ + "/no/notice", [] {});
  ASSERT_FALSE(watch.ok());
  const std::string text(watch.status().message());
  EXPECT_NE(text.find("the folder " + folder_ + "/no can't be watched (No such file"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace muster::launcher
