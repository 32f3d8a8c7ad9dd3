// What the agent reads and makes on this machine: error files, folders, ports; and what it puts
// before lines.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "agent/error_file.h"
#include "agent/free_port.h"
#include "agent/log_layout.h"
#include "agent/output_prefix.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class LocalFilesTest : public testing::Test {
 protected:
  LocalFilesTest() {
    char name[] = "/tmp/local_files_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("TMPDIR", folder_.c_str(), 1);
  }
  ~LocalFilesTest() override { fs::remove_all(folder_); }

  std::string File(const std::string& content) const {
    std::string path = folder_ / "error.json";
    std::ofstream(path) << content;
    return path;
  }

  fs::path folder_;
};

using ErrorFile = LocalFilesTest;
using LogLayoutTest = LocalFilesTest;

TEST_F(ErrorFile, IsWrittenOverWhatIsThereOrTheReasonIsSaid) {
  std::string path = File("an older, longer one");
  EXPECT_EQ(WriteErrorFile(R"({"message": "plain"})", path), "");
  EXPECT_EQ(ReadErrorFile(path)->raw, R"({"message": "plain"})");
  EXPECT_EQ(WriteErrorFile("x", "/proc/nowhere/copy"), "No such file or directory");
}

TEST_F(ErrorFile, BothFormsOfTheRecordAreRead) {
  EXPECT_EQ(ReadErrorFile(File(R"({"message": {"message": "RuntimeError: x",
      "extraInfo": {"py_callstack": "Traceback\n  x\n", "timestamp": "1"}}})"))
                ->text,
            "Traceback\n  x");
  EXPECT_EQ(ReadErrorFile(File(R"({"message": {"message": "RuntimeError: x"}})"))->text,
            "RuntimeError: x");
  EXPECT_EQ(ReadErrorFile(File(R"({"message": "plain", "timestamp": 1})"))->text, "plain");
}

TEST_F(ErrorFile, WhatIsNoRecordIsTakenAsItIs) {
  EXPECT_EQ(ReadErrorFile(File("it broke\n"))->text, "it broke");
  EXPECT_EQ(ReadErrorFile(File(R"({"message": {"message": "half)"))->text,
            R"({"message": {"message": "half)");
  EXPECT_EQ(ReadErrorFile(File(R"({"message": [1]})"))->text, R"({"message": [1]})");
  EXPECT_EQ(ReadErrorFile(File(R"({"message": {"extraInfo": 5}})"))->text,
            R"({"message": {"extraInfo": 5}})");
}

TEST_F(ErrorFile, OfALongTextTheEndIsShownAndAllIsPassedOn) {
  std::string traceback = "Traceback\n";
  while (traceback.size() < (3u << 20)) traceback += "  File \"t.py\", line 1, in f\n";
  const std::string raw = R"({"message": {"message": "x", "extraInfo": {"py_callstack": ")" +
                          absl::StrReplaceAll(traceback, {{"\n", "\\n"}, {"\"", "\\\""}}) +
                          R"(ValueError: it\n"}}})";
  const ErrorRecord record = *ReadErrorFile(File(raw));
  EXPECT_EQ(record.raw, raw);
  EXPECT_TRUE(record.text.starts_with("...\n  File ")) << record.text.substr(0, 40);
  EXPECT_TRUE(record.text.ends_with("\nValueError: it"));
  EXPECT_LE(record.text.size(), (16u << 10) + 4);
  EXPECT_EQ(ReadErrorFile(File(std::string(5 << 20, 'x')))->text.size(), (16u << 10) + 4);
}

TEST(ErrorRecord, IsPassedOnWithTheExitCodeAsTorchrunDoes) {
  EXPECT_EQ(WithErrorCode(R"({"message": {"message": "x"}})", -9),
            R"({"message":{"errorCode":-9,"message":"x"}})");
  for (const char* as_it_is : {R"({"message": "plain"})", "no record", R"({"other": {}})"}) {
    EXPECT_EQ(WithErrorCode(as_it_is, 3), as_it_is);
  }
  EXPECT_EQ(WithErrorCode(R"({"message": {}})", 0), R"({"message": {}})");
}

TEST(ErrorRecord, OursIsReadLikeAWorkers) {
  EXPECT_EQ(OwnErrorRecord("it \"broke\"", 69, 1700000000),
            R"({"message":{"errorCode":69,"extraInfo":{"py_callstack":"it \"broke\"",)"
            R"("timestamp":"1700000000"},"message":"it \"broke\""}})");
}

TEST_F(ErrorFile, NoFileNoText) {
  EXPECT_FALSE(ReadErrorFile(""));
  EXPECT_FALSE(ReadErrorFile(folder_ / "none"));
  EXPECT_FALSE(ReadErrorFile(File("")));
  EXPECT_FALSE(ReadErrorFile(folder_));
  std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(ReadErrorFile(fifo));
}

TEST_F(LogLayoutTest, KeepsLogsUnderTheNameOfTheRun) {
  auto layout = LogLayout::Make({.log_dir = folder_ / "a/b", .run_id = "x/y"});
  ASSERT_TRUE(layout.ok());
  fs::path kept = layout->kept_folder();
  EXPECT_EQ(kept.parent_path(), folder_ / "a/b");
  EXPECT_TRUE(kept.filename().string().starts_with("x_y_"));
  EXPECT_EQ(layout->private_folder(), "");
  layout->MakeAttempt(2, 2);
  EXPECT_EQ(layout->StdoutFile(2, LocalRank(1)), kept / "attempt_2/1/stdout.log");
  EXPECT_EQ(layout->StderrFile(2, LocalRank(1)), kept / "attempt_2/1/stderr.log");
  EXPECT_EQ(layout->ErrorFile(2, LocalRank(1)), kept / "attempt_2/1/error.json");
  EXPECT_TRUE(fs::is_directory(kept / "attempt_2/1"));
}

TEST_F(LogLayoutTest, WithoutALogFolderOnlyErrorFilesArePrivatelyKept) {
  auto layout = LogLayout::Make({.log_dir = "", .run_id = "x"});
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->kept_folder(), "");
  // Only named so far: the guardian, who removes it, is told before it exists.
  EXPECT_FALSE(fs::exists(layout->private_folder()));
  layout->MakeAttempt(0, 1);
  EXPECT_EQ(fs::status(layout->private_folder()).permissions(), fs::perms(0700));
  EXPECT_EQ(layout->StdoutFile(0, LocalRank(0)), "");
  EXPECT_EQ(layout->ErrorFile(0, LocalRank(0)),
            layout->private_folder() + "/attempt_0/0/error.json");
}

TEST_F(LogLayoutTest, RedirectedStreamsWithoutALogFolderGoToATemporaryOneThatIsKept) {
  auto layout = LogLayout::Make({.log_dir = "", .run_id = "x", .needs_files = true});
  ASSERT_TRUE(layout.ok());
  EXPECT_TRUE(layout->kept_folder().starts_with(folder_.string() + "/muster_logs_"));
  EXPECT_EQ(layout->private_folder(), "");
}

TEST_F(LogLayoutTest, DevNullMeansNoFiles) {
  auto layout = LogLayout::Make({.log_dir = "/dev/null", .run_id = "x", .needs_files = true});
  ASSERT_TRUE(layout.ok());
  layout->MakeAttempt(0, 1);
  EXPECT_EQ(layout->kept_folder() + layout->private_folder(), "");
  EXPECT_EQ(layout->ErrorFile(0, LocalRank(0)), "");
}

TEST_F(LogLayoutTest, NamesTheFolderThatCannotBeWritten) {
  auto layout = LogLayout::Make({.log_dir = "/proc/nowhere", .run_id = "x"});
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(layout.status().message().find("/proc/nowhere"), std::string::npos);
  std::ofstream(folder_ / "file") << "x";
  layout = LogLayout::Make({.log_dir = folder_ / "file", .run_id = "x"});
  EXPECT_FALSE(layout.ok());
  setenv("TMPDIR", "/proc/nowhere", 1);
  EXPECT_TRUE(LogLayout::Make({.log_dir = "", .run_id = "x"}).ok()) << "goes to /tmp";
}

// Binds `port` (0: any) at `address`, without listening; the caller closes the descriptor.
int BindTo(in_addr_t address, uint16_t port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0) << port;
  return fd;
}

TEST(FreePort, IsFreeAtEveryAddress) {
  // Ports in use at an address that isn't the node's own: one in thirty of all, so that three
  // hundred choices that looked at one address alone would meet some.
  constexpr int kTaken = 900;
  constexpr int kChoices = 300;
  std::vector<int> taken;
  taken.reserve(kTaken);
  for (int i = 0; i < kTaken; ++i) taken.push_back(BindTo(INADDR_LOOPBACK + 6, 0));
  for (int i = 0; i < kChoices; ++i) {
    uint16_t port = FindFreePort();
    ASSERT_NE(port, 0);
    close(BindTo(INADDR_ANY, port));
  }
  for (int fd : taken) close(fd);
}

TEST(OutputPrefix, IsTorchrunsOrWhatTheTemplateSays) {
  const PrefixFacts facts = {
      .role = "trainer", .local_rank = LocalRank(1), .rank = Rank(5), .host = "n7"};
  EXPECT_EQ(OutputPrefix("", facts), "[trainer1]:");
  EXPECT_EQ(OutputPrefix("${hostname}:${rank}: ", facts), "n7:5: ");
  PrefixFacts odd = facts;
  odd.role = "${rank}";
  EXPECT_EQ(OutputPrefix("<${rank}|${local_rank}|${role_name}|$rank> ", odd), "<5|1|${rank}|5> ");
  EXPECT_EQ(OutputPrefix("$$rank $ranks ${rank ${} $ $rank.$local_rank$", facts),
            "$rank $ranks ${rank ${} $ 5.1$");
}

}  // namespace
}  // namespace muster::agent
