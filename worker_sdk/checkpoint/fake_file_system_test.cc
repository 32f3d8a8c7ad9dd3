#include "worker_sdk/checkpoint/fake_file_system.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster {
namespace {

// A new file with "hello"; flushed where asked.
void Write(FakeFileSystem& files, const std::string& path, bool is_flushed) {
  auto file = files.CreateFile(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("hello", 5).ok());
  if (is_flushed) {
    ASSERT_TRUE((*file)->Sync().ok());
  }
  ASSERT_TRUE((*file)->Close().ok());
}

TEST(FakeFileSystem, BehavesLikeAFileSystem) {
  FakeFileSystem files;
  EXPECT_EQ(files.CreateDirectory("/a/b").code(), StatusCode::kNotFound);
  ASSERT_TRUE(files.CreateDirectory("/a").ok());
  EXPECT_EQ(files.CreateDirectory("/a").code(), StatusCode::kAlreadyExists);
  Write(files, "/a/x", true);
  EXPECT_EQ(files.CreateFile("/a/x").status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(files.CreateDirectory("/a/x/y").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(*files.FileSize("/a/x"), 5U);
  EXPECT_EQ(files.ReadFile("/a/x", 4).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(files.ReadFile("/a", 4).status().code(), StatusCode::kFailedPrecondition);
  Write(files, "/a/y", true);
  EXPECT_EQ(files.Rename("/a/x", "/a/y").code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(files.Rename("/a/x", "/a/z").ok());
  EXPECT_EQ(*files.ListDirectory("/a"), (std::vector<std::string>{"y", "z"}));
  EXPECT_EQ(files.RemoveDirectory("/a").code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(files.RemoveFile("/a/y").ok());
  ASSERT_TRUE(files.RemoveFile("/a/z").ok());
  ASSERT_TRUE(files.RemoveDirectory("/a").ok());
  EXPECT_FALSE(files.Exists("/a"));
}

TEST(FakeFileSystem, FailsOnceWhereTold) {
  FakeFileSystem files;
  files.FailAt(1, FakeFileSystem::IoError());
  EXPECT_TRUE(files.CreateDirectory("/a").ok());
  EXPECT_EQ(files.CreateDirectory("/b").code(), StatusCode::kUnavailable);
  EXPECT_TRUE(files.CreateDirectory("/c").ok());
  EXPECT_EQ(files.operations(), 3U);
}

TEST(FakeFileSystem, TheDeadDoNothing) {
  FakeFileSystem files;
  auto file = files.CreateFile("/a");
  ASSERT_TRUE(file.ok());
  files.FailAt(1, FakeFileSystem::KilledHalfway());
  EXPECT_FALSE((*file)->Append("12345678", 8).ok());
  EXPECT_FALSE((*file)->Append("9", 1).ok());
  EXPECT_FALSE(files.RemoveFile("/a").ok());
  files.Revive();
  EXPECT_EQ(files.Contents("/a"), "1234");
}

TEST(FakeFileSystem, APowerCutSparesWhatWasFlushed) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeFileSystem files;
    ASSERT_TRUE(files.CreateDirectory("/a").ok());
    ASSERT_TRUE(files.SyncDirectory("/").ok());
    Write(files, "/a/x", true);
    ASSERT_TRUE(files.SyncDirectory("/a").ok());
    RandomStream random(seed);
    files.LosePower(random);
    ASSERT_TRUE(files.Exists("/a/x"));
    ASSERT_EQ(files.Contents("/a/x"), "hello");
  }
}

TEST(FakeFileSystem, APowerCutMayTakeTheRest) {
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    FakeFileSystem files;
    Write(files, "/x", false);
    RandomStream random(seed);
    files.LosePower(random);
    outcomes.insert(files.Exists("/x") ? "[" + files.Contents("/x") + "]" : "gone");
  }
  EXPECT_TRUE(outcomes.contains("gone"));
  EXPECT_TRUE(outcomes.contains("[hello]"));
  EXPECT_TRUE(outcomes.contains("[he]"));
  EXPECT_TRUE(outcomes.contains(std::string("[he\0]", 5)));
}

TEST(FakeFileSystem, APowerCutKeepsARenameWhole) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeFileSystem files;
    Write(files, "/x", true);
    ASSERT_TRUE(files.SyncDirectory("/").ok());
    ASSERT_TRUE(files.Rename("/x", "/y").ok());
    RandomStream random(seed);
    files.LosePower(random);
    ASSERT_NE(files.Exists("/x"), files.Exists("/y"));
  }
}

}  // namespace
}  // namespace muster
