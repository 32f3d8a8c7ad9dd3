#include "launcher/preemption_watch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
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
    auto watch = PreemptionWatch::Start(
        folder_ + "/" + name, [this](bool is_left_over) { noticed_.set_value(is_left_over); });
    EXPECT_TRUE(watch.ok()) << watch.status();
    return watch.ok() ? *std::move(watch) : nullptr;
  }
  // Absent: it isn't. Else whether the file was there before.
  std::optional<bool> Notice() {
    auto notice = noticed_.get_future();
    if (notice.wait_for(kPatience) != std::future_status::ready) return std::nullopt;
    return notice.get();
  }
  void Make(const std::string& name) { std::ofstream(folder_ + "/" + name) << "gone soon\n"; }

  std::string folder_;
  std::promise<bool> noticed_;
};

TEST_F(PreemptionWatchTest, AFileThatAppearsIsANotice) {
  auto watch = Watch("notice");
  Make("another");
  Make("notice");
  EXPECT_EQ(Notice(), false);
  Make("notice");  // no second call: the promise would throw
}

TEST_F(PreemptionWatchTest, SoIsOneThatIsRenamedIntoPlaceOrIsThereAlready) {
  auto watch = Watch("notice");
  Make("notice.tmp");
  std::filesystem::rename(folder_ + "/notice.tmp", folder_ + "/notice");
  EXPECT_EQ(Notice(), false);
  noticed_ = {};
  watch = Watch("notice");
  EXPECT_EQ(Notice(), true) << "it is left over";
}

TEST_F(PreemptionWatchTest, EndsWhereNothingCame) {
  auto watch = Watch("notice");
  watch.reset();
  EXPECT_NE(noticed_.get_future().wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

TEST_F(PreemptionWatchTest, AFolderIsNoNotice) {
  auto watch = PreemptionWatch::Start(folder_, [](bool) {});
  ASSERT_FALSE(watch.ok());
  EXPECT_EQ(watch.status().message(), "--preemption-file=" + folder_ +
                                          " is a folder, and would be a notice at once; name a "
                                          "file in it");
}

TEST_F(PreemptionWatchTest, AFolderThatIsMissingIsSaid) {
  auto watch = PreemptionWatch::Start(folder_ + "/no/notice", [](bool) {});
  ASSERT_FALSE(watch.ok());
  const std::string text(watch.status().message());
  EXPECT_NE(text.find("the folder " + folder_ + "/no can't be watched (No such file"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace muster::launcher
