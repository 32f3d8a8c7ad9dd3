#include "agent/process/log_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class LogFileTest : public testing::Test {
 protected:
  LogFileTest() : folder_(testing::TempDir() + "/log_file_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/attempt_0/0/stdout.log";
  }
  ~LogFileTest() override { fs::remove_all(folder_); }

  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
  std::string path_;
};

TEST_F(LogFileTest, WhatIsThereIsWrittenOn) {
  for (const char* text : {"one\n", "two\n"}) {
    LogFile file(path_);
    file.Open();
    file.Write(text);
  }
  EXPECT_EQ(Contents(path_), "one\ntwo\n");
}

TEST_F(LogFileTest, IsPutAsideBetweenLines) {
  LogFile file(path_, 10);
  file.Open();
  file.Write("aaaa\nbbbb\n");
  EXPECT_FALSE(fs::exists(path_ + ".1"));
  file.Write("cc");
  EXPECT_EQ(Contents(path_ + ".1"), "aaaa\nbbbb\n");
  EXPECT_FALSE(file.has_dropped());
  file.Write("cc\ndd\nee\n");
  EXPECT_EQ(Contents(path_ + ".1"), "cccc\ndd\n");
  EXPECT_EQ(Contents(path_), "ee\n");
  EXPECT_TRUE(file.has_dropped());
  EXPECT_EQ(file.lost_bytes(), 0u);
}

TEST_F(LogFileTest, ManyLinesAtOnceLeaveTheNewest) {
  LogFile file(path_, 12);
  file.Open();
  std::string all;
  for (int i = 10; i < 100; ++i) all += std::to_string(i) + "\n";
  file.Write(all);
  EXPECT_EQ(Contents(path_ + ".1") + Contents(path_), "94\n95\n96\n97\n98\n99\n");
}

TEST_F(LogFileTest, ALineThatIsLongerThanTheLimitStaysWhole) {
  LogFile file(path_, 10);
  file.Open();
  file.Write("short\n");
  file.Write(std::string(30, 'x'));
  file.Write(std::string(30, 'y') + "\nnext\n");
  EXPECT_EQ(Contents(path_ + ".1"), std::string(30, 'x') + std::string(30, 'y') + "\n");
  EXPECT_EQ(Contents(path_), "next\n");
}

TEST_F(LogFileTest, WhereRenamingIsImpossibleItGoesOn) {
  LogFile file(path_, 10);
  file.Open();
  fs::create_directories(path_ + ".1/in the way");
  file.Write("aaaa\nbbbb\ncccc\n");
  EXPECT_EQ(Contents(path_), "aaaa\nbbbb\ncccc\n");
  EXPECT_NE(file.failure(), "");
  EXPECT_EQ(file.lost_bytes(), 0u);
}

TEST_F(LogFileTest, OneThatIsRemovedIsGivenUp) {
  LogFile file(path_);
  file.Open();
  file.Write("one\n");
  EXPECT_EQ(file.failure(), "");
  fs::remove_all(folder_ + "/attempt_0");
  file.Write("two\n");
  EXPECT_EQ(file.failure(), "it was removed");
  EXPECT_EQ(file.lost_bytes(), 4u);
  file.Write("three\n");
  EXPECT_EQ(file.lost_bytes(), 10u);
}

TEST_F(LogFileTest, WhatCantBeWrittenIsCounted) {
  std::ofstream(folder_ + "/attempt_0") << "a file";
  LogFile file(path_, 10);
  file.Open();
  file.Write("lost, and more than the limit\n");
  EXPECT_EQ(file.lost_bytes(), 30u);
  EXPECT_EQ(file.failure(), "Not a directory");
}

}  // namespace
}  // namespace muster::agent
