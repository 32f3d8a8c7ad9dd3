#include "launcher/log_tail.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

class LogTailTest : public testing::Test {
 protected:
  LogTailTest() : folder_(testing::TempDir() + "/log_tail_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/stdout.log";
  }
  ~LogTailTest() override { fs::remove_all(folder_); }

  void Append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  static std::string ReadAll(LogTail& tail) {
    std::string out;
    while (tail.ReadMore(&out)) {
    }
    return out;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(LogTailTest, ShowsWholeLinesAsTheyCome) {
  Append("one\ntw");
  LogTail tail(path_, "[0]: ");
  EXPECT_EQ(ReadAll(tail), "[0]: one\n");
  EXPECT_EQ(ReadAll(tail), "");
  Append("o\nthree\n");
  EXPECT_EQ(ReadAll(tail), "[0]: two\n[0]: three\n");
  Append("end");
  std::string out;
  EXPECT_TRUE(tail.ReadMore(&out));
  EXPECT_EQ(out, "");
  tail.End(&out);
  EXPECT_EQ(out, "[0]: end\n");
}

TEST_F(LogTailTest, GoesOnOverAFileThatIsPutAside) {
  Append("one\n");
  LogTail tail(path_, "");
  EXPECT_EQ(ReadAll(tail), "one\n");
  Append("two\n");
  fs::rename(path_, path_ + ".1");
  Append("three\n");
  EXPECT_EQ(ReadAll(tail), "two\nthree\n");
  fs::rename(path_, path_ + ".1");
  EXPECT_EQ(ReadAll(tail), "");
  Append("four\n");
  EXPECT_EQ(ReadAll(tail), "four\n");
}

TEST_F(LogTailTest, BeginsWithWhatWasPutAside) {
  Append("one\n");
  fs::rename(path_, path_ + ".1");
  Append("two\n");
  LogTail tail(path_, "");
  EXPECT_EQ(ReadAll(tail), "one\ntwo\n");
}

TEST_F(LogTailTest, WaitsForAFileThatIsNotThereYet) {
  LogTail tail(path_, "");
  EXPECT_EQ(ReadAll(tail), "");
  Append("one\n");
  EXPECT_EQ(ReadAll(tail), "one\n");
}

TEST_F(LogTailTest, AnEndlessLineIsCut) {
  Append(std::string(kMostReadAtOnce + 10, 'x') + "\n");
  LogTail tail(path_, "");
  std::string out = ReadAll(tail);
  EXPECT_EQ(out.size(), kMostReadAtOnce + 10 + 2);
}

}  // namespace
}  // namespace muster::launcher
