#include "agent/private_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class PrivateFolderTest : public testing::Test {
 protected:
  PrivateFolderTest() {
    std::string pattern = testing::TempDir() + "/private_folder_XXXXXX";
    parent_ = mkdtemp(pattern.data());
  }
  ~PrivateFolderTest() override { fs::remove_all(parent_); }

  static void MakeOld(const std::string& path) {
    timespec old[2] = {{time(nullptr) - 120, 0}, {time(nullptr) - 120, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  }

  std::string parent_;
};

TEST_F(PrivateFolderTest, IsMadeForThisUserAlone) {
  PrivateFolder folder(parent_);
  EXPECT_FALSE(fs::exists(folder.path()));
  folder.Make();
  folder.Make();
  EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
  fs::remove(folder.path());
  folder.Make();
  EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
  MakeOld(folder.path());
  RemoveAbandonedFolders(parent_);
  EXPECT_TRUE(fs::exists(folder.path()));
  EXPECT_NE(PrivateFolder(parent_).path(), folder.path());
}

TEST_F(PrivateFolderTest, WhatNobodyUsesIsRemovedWithAllThatIsInIt) {
  std::optional<PrivateFolder> folder(std::in_place, parent_);
  folder->Make();
  std::string path = folder->path();
  fs::create_directories(path + "/attempt_0/0");
  std::ofstream(path + "/attempt_0/0/error.json") << "{}";
  MakeOld(path);
  RemoveAbandonedFolders(parent_);
  EXPECT_TRUE(fs::exists(path)) << "in use";
  folder.reset();
  RemoveAbandonedFolders(parent_);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(PrivateFolderTest, AFolderThatIsBeingMadeIsLeftAlone) {
  std::string path = PrivateFolder(parent_).path();
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  RemoveAbandonedFolders(parent_);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(PrivateFolderTest, OtherThingsAreLeftAlone) {
  std::string name = fs::path(PrivateFolder(parent_).path()).filename();
  std::string precious = parent_ + "/precious";
  ASSERT_EQ(mkdir(precious.c_str(), 0700), 0);
  fs::create_directory_symlink(precious, parent_ + "/" + name);
  for (const char* other : {"muster_logs_abcdef", "muster_0123", "other"}) {
    ASSERT_EQ(mkdir((parent_ + "/" + other).c_str(), 0700), 0);
    MakeOld(parent_ + "/" + other);
  }
  MakeOld(precious);
  RemoveAbandonedFolders(parent_);
  RemoveAbandonedFolders(parent_ + "/nowhere");
  EXPECT_EQ(std::distance(fs::directory_iterator(parent_), {}), 5);
}

}  // namespace
}  // namespace muster::agent
