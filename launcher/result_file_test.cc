#include "launcher/result_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

EndedJob Failed() {
  EndedJob ended;
  ended.run_id = "job";
  ended.node_name = "n1";
  ended.world.round = RoundId(3);
  ended.attempt = 2;
  ended.world_size = 4;
  ended.node_count = 2;
  ended.ended_at_s = 1700000000;
  ended.verdict.exit_code = 137;
  ended.verdict.reason = "worker rank 1 was killed";
  ended.verdict.restarts_charged = 2;
  WorkerFailure root;
  root.rank = Rank(1);
  root.node_name = "n2";
  root.pid = 77;
  root.exit.signal = 9;
  root.out_of_memory = true;
  root.only_waited = true;
  root.evidence = "the kernel killed it";
  root.wall_time_s = 1700000000;
  WorkerFailure follower;
  follower.rank = Rank(0);
  follower.exit.code = 1;
  follower.last_step = 12;
  follower.stderr_tail = "peer lost: \xff\n";
  ended.verdict.failures = {root, follower};
  return ended;
}

TEST(ResultJson, HasAllFieldsWithTheRootCauseFirst) {
  json result = json::parse(ResultJson(Failed()));
  EXPECT_EQ(result["schema"], 1);
  EXPECT_EQ(result["run_id"], "job");
  EXPECT_EQ(result["node"], "n1");
  EXPECT_EQ(result["succeeded"], false);
  EXPECT_EQ(result["exit_code"], 137);
  EXPECT_EQ(result["reason"], "worker rank 1 was killed");
  EXPECT_EQ(result["restarts_charged"], 2);
  EXPECT_EQ(result["attempt"], 2);
  EXPECT_EQ(result["round"], 3);
  EXPECT_EQ(result["world"]["size"], 4);
  EXPECT_EQ(result["world"]["nodes"], 2);
  EXPECT_EQ(result["ended_at"], "2023-11-14T22:13:20Z");
  ASSERT_EQ(result["failures"].size(), 2u);
  const json& root = result["failures"][0];
  EXPECT_EQ(root["role"], "root_cause");
  EXPECT_EQ(root["rank"], 1);
  EXPECT_EQ(root["node"], "n2");
  EXPECT_EQ(root["signal"], "SIGKILL");
  EXPECT_EQ(root["signal_number"], 9);
  EXPECT_TRUE(root["exit_code"].is_null());
  EXPECT_EQ(root["out_of_memory"], true);
  EXPECT_EQ(root["only_waited"], true);
  EXPECT_EQ(root["evidence"], "the kernel killed it");
  EXPECT_TRUE(root["last_step"].is_null());
  EXPECT_EQ(root["failed_at"], "2023-11-14T22:13:20Z");
  const json& follower = result["failures"][1];
  EXPECT_EQ(follower["role"], "follower");
  EXPECT_EQ(follower["exit_code"], 1);
  EXPECT_TRUE(follower["signal"].is_null());
  EXPECT_EQ(follower["last_step"], 12);
  EXPECT_TRUE(follower["pid"].is_null());
  // A byte that isn't UTF-8 is replaced.
  EXPECT_EQ(follower["stderr_tail"], "peer lost: \xef\xbf\xbd\n");
}

TEST(ResultJson, WithoutARoundThereIsNoWorld) {
  EndedJob ended;
  ended.verdict.succeeded = true;
  json result = json::parse(ResultJson(ended));
  EXPECT_EQ(result["succeeded"], true);
  for (const char* name : {"attempt", "round", "world", "reason", "ended_at"}) {
    EXPECT_TRUE(result[name].is_null()) << name;
  }
  EXPECT_TRUE(result["failures"].empty());
}

class ResultFileTest : public testing::Test {
 protected:
  ResultFileTest() {
    char name[] = "/tmp/result_file_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~ResultFileTest() override { fs::remove_all(folder_); }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  size_t FileCount() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string folder_;
};

TEST_F(ResultFileTest, TheFirstEndReplacesTheFile) {
  std::string path = folder_ + "/result.json";
  std::ofstream(path) << "old";
  ResultFile file(path);
  file.Write(Failed());
  file.Write(EndedJob{});
  EXPECT_EQ(Read(path), ResultJson(Failed()));
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(ResultFileTest, ALinkStaysALink) {
  std::ofstream(folder_ + "/real.json") << "old";
  fs::create_symlink("real.json", folder_ + "/link.json");
  ResultFile(folder_ + "/link.json").Write(Failed());
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link.json"));
  EXPECT_EQ(Read(folder_ + "/real.json"), ResultJson(Failed()));
}

TEST_F(ResultFileTest, ADeviceIsWrittenNotReplaced) {
  ResultFile("/dev/null").Write(Failed());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// As /dev/stdout does where stdout is a file: what is there already must stay.
TEST_F(ResultFileTest, AFileThatIsOpenAsADescriptorOfOursIsWrittenToNotReplaced) {
  std::string path = folder_ + "/out.log";
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, "line\n", 5), 5);
  ResultFile("/dev/fd/" + std::to_string(fd)).Write(Failed());
  close(fd);
  EXPECT_EQ(Read(path), "line\n" + ResultJson(Failed()));
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(ResultFileTest, WhatCanNotBeWrittenIsSaidOnce) {
  testing::internal::CaptureStderr();
  ResultFile file(folder_ + "/none/result.json");
  file.Write(Failed());
  file.Write(Failed());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "muster: --result-file=" + folder_ +
                "/none/result.json can't be written: No such file or directory; the exit code "
                "tells how the job ended\n");
}

// More than a pipe holds, which is 64 KiB.
EndedJob FailedWithManyWords() {
  EndedJob ended = Failed();
  ended.verdict.failures[0].stderr_tail = std::string(1 << 20, 'x');
  return ended;
}

class ResultPipeTest : public ResultFileTest {
 protected:
  ResultPipeTest() : path_(folder_ + "/pipe") {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    // As `cat pipe` that waits for who writes.
    reader_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_GE(reader_, 0);
    room_ = fcntl(reader_, F_GETPIPE_SZ);
  }
  ~ResultPipeTest() override { CloseReader(); }
  void CloseReader() {
    if (reader_ >= 0) close(reader_);
    reader_ = -1;
  }
  // What comes until the writer has closed the pipe.
  std::string ReadAll() {
    fcntl(reader_, F_SETFL, 0);
    std::string all;
    std::vector<char> piece(1000);
    ssize_t count = 0;
    while ((count = read(reader_, piece.data(), piece.size())) > 0) {
      all.append(piece.data(), static_cast<size_t>(count));
    }
    return all;
  }
  std::string WriteAndListen(ResultFile& file, const EndedJob& ended) {
    testing::internal::CaptureStderr();
    file.Write(ended);
    return testing::internal::GetCapturedStderr();
  }
  static std::string Said(const std::string& path, const std::string& reason) {
    return "muster: --result-file=" + path + " can't be written: " + reason +
           "; the exit code tells how the job ended\n";
  }

  void WaitUntilFull() const {
    int waiting = 0;
    while (ioctl(reader_, FIONREAD, &waiting) == 0 && waiting < room_) std::this_thread::yield();
  }

  const std::string path_;
  int reader_ = -1;
  int room_ = 0;
};

TEST_F(ResultPipeTest, AReaderGetsAllOfALongVerdict) {
  ResultFile file(path_);
  auto read = std::async(std::launch::async, [this] {
    WaitUntilFull();
    return ReadAll();
  });
  EXPECT_EQ(WriteAndListen(file, FailedWithManyWords()), "");
  EXPECT_EQ(read.get(), ResultJson(FailedWithManyWords()));
}

TEST_F(ResultPipeTest, AReaderThatStandsStillIsNotWaitedForForEver) {
  ResultFile file(path_, std::chrono::milliseconds(20));
  EXPECT_EQ(WriteAndListen(file, FailedWithManyWords()),
            Said(path_, "its reader took nothing of it for too long"));
  EXPECT_EQ(ReadAll().size(), static_cast<size_t>(room_));
}

TEST_F(ResultPipeTest, AReaderThatGoesAwayIsSaid) {
  ResultFile file(path_);
  auto go = std::async(std::launch::async, [this] {
    WaitUntilFull();
    CloseReader();
  });
  EXPECT_EQ(WriteAndListen(file, FailedWithManyWords()),
            Said(path_, "its reader went away before the end"));
}

TEST_F(ResultPipeTest, NobodyIsNotWaitedFor) {
  CloseReader();
  ResultFile file(path_);
  EXPECT_EQ(WriteAndListen(file, Failed()), Said(path_, "nobody reads it"));
  EXPECT_TRUE(fs::is_fifo(path_));
}

TEST_F(ResultFileTest, NoPathWritesNothing) {
  ResultFile file("");
  file.Write(Failed());
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(ResultFileTest, ThePathIsCheckedBeforehand) {
  EXPECT_FALSE(CheckResultFile(""));
  EXPECT_FALSE(CheckResultFile("result.json"));
  EXPECT_FALSE(CheckResultFile(folder_ + "/result.json"));
  EXPECT_EQ(CheckResultFile(folder_),
            "--result-file=" + folder_ + " is a folder; name a file in it");
  EXPECT_EQ(CheckResultFile(folder_ + "/none/r.json"),
            "--result-file=" + folder_ + "/none/r.json: there is no folder " + folder_ +
                "/none; make it, or name a file elsewhere");
}

}  // namespace
}  // namespace muster::launcher
