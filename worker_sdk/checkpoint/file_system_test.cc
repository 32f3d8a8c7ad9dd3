#include "worker_sdk/checkpoint/file_system.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster {
namespace {

class FileSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::string(std::getenv("TEST_TMPDIR")) + "/files.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  static std::string_view Text(const FileBytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data.get()), bytes.size};
  }
  void Write(const std::string& name, std::string_view text) {
    auto file = files_.CreateFile(Path(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE((*file)->Append(text.data(), text.size()).ok());
    ASSERT_TRUE((*file)->Sync().ok());
    ASSERT_TRUE((*file)->Close().ok());
  }

  FileSystem& files_ = RealFileSystem();
  std::string root_;
};

TEST_F(FileSystemTest, WritesReadsListsAndRemoves) {
  ASSERT_TRUE(files_.CreateDirectory(Path("d")).ok());
  Write("d/b", "hello");
  Write("d/a", "");
  const auto names = files_.ListDirectory(Path("d"));
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(*names, (std::vector<std::string>{"a", "b"}));
  const auto bytes = files_.ReadFile(Path("d/b"), 5);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(Text(*bytes), "hello");
  EXPECT_EQ(*files_.FileSize(Path("d/b")), 5U);
  EXPECT_TRUE(files_.SyncDirectory(Path("d")).ok());
  EXPECT_EQ(files_.RemoveDirectory(Path("d")).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(files_.RemoveFile(Path("d/a")).ok());
  EXPECT_TRUE(files_.RemoveFile(Path("d/b")).ok());
  EXPECT_TRUE(files_.RemoveDirectory(Path("d")).ok());
}

TEST_F(FileSystemTest, NeverWritesOverWhatIsThere) {
  Write("a", "old");
  Write("b", "new");
  EXPECT_EQ(files_.CreateFile(Path("a")).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(files_.CreateDirectory(Path("a")).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(files_.Rename(Path("b"), Path("a")).code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(files_.CreateDirectory(Path("d")).ok());
  ASSERT_TRUE(files_.CreateDirectory(Path("e")).ok());
  // rename(2) would replace an empty directory.
  EXPECT_EQ(files_.Rename(Path("d"), Path("e")).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(files_.Rename(Path("d"), Path("f")).ok());
  EXPECT_EQ(Text(*files_.ReadFile(Path("a"), 10)), "old");
}

TEST_F(FileSystemTest, ErrorsNameThePathAndTheReason) {
  const Status missing = files_.ReadFile(Path("none"), 10).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_NE(missing.message().find(Path("none") + ": No such file"), std::string::npos)
      << missing.message();
  Write("a", "four");
  EXPECT_EQ(files_.ReadFile(Path("a"), 3).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(files_.CreateDirectory(Path("a/b")).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(files_.ListDirectory(Path("a")).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(files_.SyncDirectory(Path("none")).code(), StatusCode::kNotFound);
  EXPECT_EQ(files_.FileSize(Path("none")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(files_.RemoveFile(Path("none")).code(), StatusCode::kNotFound);
  EXPECT_EQ(files_.ReadFile(root_, 10).status().code(), StatusCode::kFailedPrecondition);
}

// While it lives, files of this process can't grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  sighandler_t old_handler_;
  rlimit old_{};
};

// The kernel writes the half that fits and refuses the rest, as a full disk does.
TEST_F(FileSystemTest, AWriteThatDoesntFitIsResourceExhausted) {
  const auto file = files_.CreateFile(Path("big"));
  ASSERT_TRUE(file.ok());
  const FileSizeLimit limit(4096);
  const std::string text(10000, 'x');
  const Status written = (*file)->Append(text.data(), text.size());
  EXPECT_EQ(written.code(), StatusCode::kResourceExhausted) << written.message();
  EXPECT_EQ(*files_.FileSize(Path("big")), 4096U);
}

}  // namespace
}  // namespace muster
