// The thread for files and the file behind it. A fifo that nobody reads plays the dead file server:
// opening it blocks until the test reads.
#include "agent/process/file_thread.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>

#include "agent/process/queued_file.h"
#include "base/clock.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

// Blocks the thread until it is opened; shared by the task and the test.
class Gate {
 public:
  std::function<void()> Task() {
    return [opened = opened_] { opened.wait(); };
  }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  const std::shared_future<void> opened_ = open_.get_future().share();
};

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

LostOutput Closed(QueuedFile* file) {
  auto lost = std::make_shared<std::promise<LostOutput>>();
  file->Close([lost](LostOutput all) { lost->set_value(std::move(all)); });
  return lost->get_future().get();
}

TEST(FileThread, RunsTasksInTheirOrderAndAllBeforeItEnds) {
  std::string order;
  {
    FileThread files;
    for (char c = 'a'; c <= 'z'; ++c) EXPECT_TRUE(files.Offer(1, [&order, c] { order += c; }));
    files.Post([&order] { order += '.'; });
  }
  EXPECT_EQ(order, "abcdefghijklmnopqrstuvwxyz.");
}

TEST(FileThread, RefusesWhatADiskThatIsStuckCannotTake) {
  Gate gate;
  auto ran = std::make_shared<std::atomic<int>>(0);
  FileThread files;
  ASSERT_TRUE(files.Offer(0, gate.Task()));
  ASSERT_TRUE(files.Offer(kFileBacklogBytes, [ran] { ++*ran; }));
  EXPECT_FALSE(files.Offer(1, [ran] { ++*ran; }));
  std::promise<void> closed;
  files.Post([&] { closed.set_value(); });
  gate.Open();
  closed.get_future().wait();
  EXPECT_EQ(*ran, 1);
  EXPECT_TRUE(files.Offer(1, [] {}));
}

TEST(FileThread, HoldsUpWhileThereIsMuchAndTheDiskMakesProgress) {
  Gate gate;
  std::promise<void> room;
  FileThread files([&room] { room.set_value(); });
  EXPECT_TRUE(files.HoldsUpUntil().IsNever());
  EXPECT_TRUE(files.StuckAt().IsNever());
  ASSERT_TRUE(files.Offer(0, gate.Task()));
  ASSERT_TRUE(files.Offer(kFileHighWaterBytes, [] {}));
  Instant until = files.HoldsUpUntil();
  ASSERT_FALSE(until.IsNever());
  EXPECT_TRUE(files.HoldsUp(until - kFileStuckAfter));
  EXPECT_FALSE(files.HoldsUp(until));
  gate.Open();
  room.get_future().wait();
  EXPECT_FALSE(files.HoldsUp(SystemClock().Now()));
}

TEST(FileThread, HoldsUpBeforeManySmallTasksAreRefused) {
  Gate gate;
  std::promise<void> room;
  FileThread files([&room] { room.set_value(); });
  ASSERT_TRUE(files.Offer(0, gate.Task()));
  for (size_t i = 0; files.HoldsUpUntil().IsNever(); ++i) {
    ASSERT_LT(i, kFileBacklogTasks);
    ASSERT_TRUE(files.Offer(1, [] {}));
  }
  EXPECT_TRUE(files.Offer(1, [] {})) << "what was read before is still taken";
  gate.Open();
  room.get_future().wait();
  EXPECT_FALSE(files.HoldsUp(SystemClock().Now()));
}

TEST(FileThread, EndsThoughADiskIsStuck) {
  Gate gate;
  auto start = std::chrono::steady_clock::now();
  {
    FileThread files;
    ASSERT_TRUE(files.Offer(0, gate.Task()));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, kFileStuckAfter - seconds(1));
  EXPECT_LT(std::chrono::steady_clock::now() - start, kFileEndPatience);
  gate.Open();
}

class QueuedFileTest : public testing::Test {
 protected:
  QueuedFileTest() {
    std::string pattern = testing::TempDir() + "/queued_file_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }

  QueuedFile::Options Options(const std::string& name) {
    return {.path = folder_ + "/" + name,
            .thread = &files_,
            .say = [this](const std::string& line) { said_ += line + "\n"; }};
  }

  std::string folder_;
  // Read once the file is closed.
  std::string said_;
  FileThread files_;
};

TEST_F(QueuedFileTest, KeepsEveryByteInOrder) {
  QueuedFile file(Options("new/folder/log"));
  for (int i = 0; i < 1000; ++i) file.Write(std::to_string(i) + ",");
  EXPECT_EQ(Closed(&file).bytes, 0U);
  std::string text = Contents(folder_ + "/new/folder/log");
  EXPECT_TRUE(text.starts_with("0,1,2,")) << text.substr(0, 20);
  EXPECT_TRUE(text.ends_with(",998,999,"));
  EXPECT_EQ(file.LostSoFar().bytes, 0U);
}

TEST_F(QueuedFileTest, SaysOnceThatItCannotBeWrittenAndCountsAll) {
  mkdir((folder_ + "/log").c_str(), 0700);
  QueuedFile file(Options("log"));
  file.Write("lost");
  file.Write(" too");
  LostOutput lost = Closed(&file);
  EXPECT_EQ(lost.place, folder_ + "/log");
  EXPECT_EQ(lost.reason, "Is a directory");
  EXPECT_EQ(lost.bytes, 8U);
  EXPECT_EQ(said_, "muster: cannot write " + folder_ +
                       "/log: Is a directory; the job goes on without it\n");
}

TEST_F(QueuedFileTest, ADiskThatDoesNotAnswerCostsItsOutputAlone) {
  std::string path = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  QueuedFile file(Options("fifo"));
  std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) file.Write(megabyte);
  LostOutput lost = file.LostSoFar();
  EXPECT_EQ(lost.bytes, 20U << 20);
  EXPECT_EQ(lost.reason, "its disk doesn't answer");
  // It comes back: what was kept is written, what was refused is told.
  int reader = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  auto size = std::async(std::launch::async, [reader] {
    size_t all = 0;
    char chunk[65536];
    for (ssize_t got = 0; (got = read(reader, chunk, sizeof chunk)) > 0;) {
      all += static_cast<size_t>(got);
    }
    return all;
  });
  EXPECT_EQ(Closed(&file).bytes, 4U << 20);
  EXPECT_EQ(size.get(), 16U << 20);
  close(reader);
}

TEST_F(QueuedFileTest, WithoutAPathThereIsNothingToLose) {
  QueuedFile file({});
  file.Write("text");
  EXPECT_FALSE(file.has_path());
  EXPECT_EQ(Closed(&file).bytes, 0U);
  EXPECT_EQ(file.LostSoFar().bytes, 0U);
}

}  // namespace
}  // namespace muster::agent
