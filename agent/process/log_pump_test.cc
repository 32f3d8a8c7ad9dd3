// The pump with pipes that the test writes into, and consoles that the test reads, or doesn't.
#include "agent/process/log_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using namespace std::string_literals;
using std::chrono::seconds;

constexpr RoundId kRound(1);
constexpr LocalRank kZero(0);
constexpr LocalRank kOne(1);

// Writes all of `bytes`; false if the pipe doesn't take it within 20 s: a blocked worker.
bool WriteAll(int fd, std::string_view bytes) {
  auto end = std::chrono::steady_clock::now() + seconds(20);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  while (!bytes.empty() && std::chrono::steady_clock::now() < end) {
    pollfd writable{fd, POLLOUT, 0};
    poll(&writable, 1, 1000);
    ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote > 0) bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return bytes.empty();
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ReadAvailable(int fd) {
  std::string text;
  char chunk[65536];
  for (ssize_t got = 0; (got = read(fd, chunk, sizeof(chunk))) > 0;) {
    text.append(chunk, static_cast<size_t>(got));
  }
  return text;
}

// Descriptors of this process.
int CountOpen() {
  namespace fs = std::filesystem;
  auto all = fs::directory_iterator("/proc/self/fd");
  return static_cast<int>(std::distance(fs::begin(all), fs::end(all))) - 1;  // its own
}

// A pump whose console is two files, or two descriptors that a test gives.
class LogPumpTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/log_pump_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    console_out_ = open((folder_ + "/out").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    console_err_ = open((folder_ + "/err").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    Use(console_out_, console_err_);
  }
  void TearDown() override {
    pump_.reset();
    close(console_out_);
    close(console_err_);
  }

  void Use(int stdout_fd, int stderr_fd) {
    pump_ =
        std::make_unique<LogPump>(LogPump::Options{.stdout_fd = stdout_fd, .stderr_fd = stderr_fd});
  }

  std::string Tail(LocalRank local_rank) {
    std::promise<std::string> tail;
    pump_->StderrTail(local_rank, [&](std::string text) { tail.set_value(std::move(text)); });
    return tail.get_future().get();
  }
  std::vector<LostOutput> Finish(RoundId round, Duration patience) {
    std::promise<std::vector<LostOutput>> lost;
    pump_->Finish(round, patience,
                  [&](std::vector<LostOutput> all) { lost.set_value(std::move(all)); });
    return lost.get_future().get();
  }

  std::string Out() const { return Contents(folder_ + "/out"); }
  std::string Err() const { return Contents(folder_ + "/err"); }

  WorkerOutput Output(int local_rank) const {
    WorkerOutput output;
    output.local_rank = LocalRank(local_rank);
    output.stdout_prefix = output.stderr_prefix = "[r" + std::to_string(local_rank) + "]: ";
    return output;
  }

  static void CloseAll(const std::vector<WorkerPipes>& pipes) {
    for (const WorkerPipes& ends : pipes) {
      close(ends.stdout_fd);
      close(ends.stderr_fd);
    }
  }

  std::string folder_;
  int console_out_ = -1;
  int console_err_ = -1;
  std::unique_ptr<LogPump> pump_;
};

TEST_F(LogPumpTest, ShowsWholeLinesOnTheRightStream) {
  auto pipes = pump_->Open(kRound, {Output(0), Output(1)});
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, "one\ntw"));
  ASSERT_TRUE(WriteAll(pipes[1].stderr_fd, "three\n"));
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, "o\nend"));
  CloseAll(pipes);
  EXPECT_TRUE(Finish(kRound, seconds(20)).empty());
  EXPECT_EQ(Out(), "[r0]: one\n[r0]: two\n[r0]: end\n");
  EXPECT_EQ(Err(), "[r1]: three\n");
}

TEST_F(LogPumpTest, KeepsLinesWholeUnderTwoLoudWriters) {
  auto pipes = pump_->Open(kRound, {Output(0), Output(1)});
  constexpr int kLines = 20000;
  std::vector<std::thread> writers;
  writers.reserve(2);
  std::vector<char> wrote_all(2, 0);
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&, i] {
      std::string text;
      for (int line = 0; line < kLines; ++line) {
        text += std::to_string(line) + " " + std::string(line % 200, 'a' + i) + "\n";
      }
      wrote_all[i] = WriteAll(pipes[i].stdout_fd, text);
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_TRUE(wrote_all[0] && wrote_all[1]);
  CloseAll(pipes);
  EXPECT_TRUE(Finish(kRound, seconds(20)).empty());
  std::istringstream shown(Out());
  std::map<std::string, int> next;
  for (std::string line; std::getline(shown, line);) {
    std::string prefix = line.substr(0, 6);
    int number = next[prefix]++;
    ASSERT_EQ(line, prefix + std::to_string(number) + " " +
                        std::string(number % 200, prefix == "[r0]: " ? 'a' : 'b'));
  }
  EXPECT_EQ(next["[r0]: "], kLines);
  EXPECT_EQ(next["[r1]: "], kLines);
}

TEST_F(LogPumpTest, WritesEveryByteToTheFilesAndShowsWhatIsAsked) {
  WorkerOutput tee = Output(0), redirect = Output(1);
  tee.stdout_file = folder_ + "/logs/attempt_0/0/stdout.log";
  tee.stderr_file = folder_ + "/logs/attempt_0/0/stderr.log";
  redirect.stdout_file = folder_ + "/logs/attempt_0/1/stdout.log";
  redirect.show_stdout = false;
  auto pipes = pump_->Open(kRound, {tee, redirect});
  std::string bytes = "a\n\377\376\n\0b\r\nafter"s;
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, bytes));
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, "err\n"));
  ASSERT_TRUE(WriteAll(pipes[1].stdout_fd, bytes));
  CloseAll(pipes);
  EXPECT_TRUE(Finish(kRound, seconds(20)).empty());
  EXPECT_EQ(Contents(tee.stdout_file), bytes);
  EXPECT_EQ(Contents(tee.stderr_file), "err\n");
  EXPECT_EQ(Contents(redirect.stdout_file), bytes);
  EXPECT_EQ(Out(), "[r0]: a\n[r0]: \377\376\n[r0]: \0b\r\n[r0]: after\n"s);
  EXPECT_EQ(Err(), "[r0]: err\n");
}

TEST_F(LogPumpTest, GathersLinesThatHoldATextFromAllWorkers) {
  pump_ = std::make_unique<LogPump>(LogPump::Options{.stdout_fd = console_out_,
                                                     .stderr_fd = console_err_,
                                                     .stdout_filters = {"loss", "acc"},
                                                     .stderr_filters = {"Warning"}});
  WorkerOutput first = Output(0), second = Output(1), third = Output(2);
  for (WorkerOutput* output : {&first, &second}) {
    output->filtered_stdout = folder_ + "/logs/filtered_stdout.log";
    output->filtered_stderr = folder_ + "/logs/filtered_stderr.log";
    output->filtered_prefix = "[default" + std::to_string(output->local_rank.value) + "]:";
  }
  auto pipes = pump_->Open(kRound, {first, second, third});
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, "start\nloss 1\n"));
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, "loss on stderr\nWarning: low\n"));
  close(pipes[0].stdout_fd);
  close(pipes[0].stderr_fd);
  ASSERT_TRUE(WriteAll(pipes[2].stdout_fd, "loss of one that isn't teed\n"));
  ASSERT_TRUE(WriteAll(pipes[1].stdout_fd, "acc 2, unfinished"));
  CloseAll({pipes[1], pipes[2]});
  EXPECT_TRUE(Finish(kRound, seconds(20)).empty());
  const std::string gathered = Contents(folder_ + "/logs/filtered_stdout.log");
  EXPECT_TRUE(gathered == "[default0]:loss 1\n[default1]:acc 2, unfinished\n" ||
              gathered == "[default1]:acc 2, unfinished\n[default0]:loss 1\n")
      << gathered;
  EXPECT_EQ(Contents(folder_ + "/logs/filtered_stderr.log"), "[default0]:Warning: low\n");
}

TEST_F(LogPumpTest, PutsALargeFileAsideAndSaysOnceThatOutputIsGone) {
  pump_ = std::make_unique<LogPump>(LogPump::Options{
      .stdout_fd = console_out_, .stderr_fd = console_err_, .log_max_bytes = 1000});
  WorkerOutput output = Output(0);
  output.stdout_file = folder_ + "/stdout.log";
  output.show_stdout = false;
  auto pipes = pump_->Open(kRound, {output});
  std::string text;
  for (int i = 1000; i < 2000; ++i) text += std::to_string(i) + "\n";
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, text));
  CloseAll(pipes);
  EXPECT_TRUE(Finish(kRound, seconds(20)).empty());
  const std::string kept = Contents(output.stdout_file + ".1") + Contents(output.stdout_file);
  EXPECT_TRUE(text.ends_with(kept));
  EXPECT_GE(kept.size(), 1000u);
  EXPECT_LE(kept.size(), 2000u);
  pump_.reset();
  EXPECT_EQ(Err(), "muster: " + output.stdout_file +
                       " has reached --log-max-bytes again; what is older than " +
                       output.stdout_file + ".1 is gone\n");
}

TEST_F(LogPumpTest, KeepsTheEndOfStderrForTheVerdict) {
  auto pipes = pump_->Open(kRound, {Output(0), Output(1)});
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "line " + std::to_string(i) + "\n";
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, text));
  CloseAll(pipes);
  std::string tail = Tail(kZero);
  EXPECT_LE(tail.size(), 4096U);
  EXPECT_GT(tail.size(), 4000U);
  EXPECT_TRUE(text.ends_with(tail));
  EXPECT_EQ(tail.substr(0, 5), "line ");
  EXPECT_EQ(Tail(kOne), "");
  EXPECT_EQ(Tail(LocalRank(7)), "");
  Finish(kRound, seconds(20));
  EXPECT_EQ(Tail(kZero), tail);
  // A new round begins with nothing.
  CloseAll(pump_->Open(RoundId(2), {Output(0)}));
  EXPECT_EQ(Tail(kZero), "");
}

TEST_F(LogPumpTest, ANewAttemptWritesNewFiles) {
  for (uint64_t attempt = 0; attempt < 2; ++attempt) {
    WorkerOutput output = Output(0);
    output.stdout_file = folder_ + "/attempt_" + std::to_string(attempt) + "/stdout.log";
    auto pipes = pump_->Open(RoundId(attempt + 1), {output});
    ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, std::to_string(attempt)));
    CloseAll(pipes);
    Finish(RoundId(attempt + 1), seconds(20));
  }
  EXPECT_EQ(Contents(folder_ + "/attempt_0/stdout.log"), "0");
  EXPECT_EQ(Contents(folder_ + "/attempt_1/stdout.log"), "1");
}

TEST_F(LogPumpTest, AFullDiskCostsTheFileAndNothingElse) {
  WorkerOutput output = Output(0);
  output.stdout_file = "/dev/full";
  auto pipes = pump_->Open(kRound, {output, Output(1)});
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "0123456789\n";
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, text));
  CloseAll(pipes);
  auto lost = Finish(kRound, seconds(20));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].place, "/dev/full");
  EXPECT_EQ(lost[0].reason, "No space left on device");
  EXPECT_EQ(lost[0].bytes, text.size());
  EXPECT_EQ(Out().size(), text.size() + size_t{100000} * 6);
  // Said once.
  EXPECT_EQ(
      Err(),
      "muster: cannot write /dev/full: No space left on device; the job goes on without it\n");
}

TEST_F(LogPumpTest, AFileThatCannotBeOpenedIsSaidAndCounted) {
  WorkerOutput output = Output(0);
  output.stderr_file = "/dev/null/sub/stderr.log";
  auto pipes = pump_->Open(kRound, {output});
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, "text\n"));
  CloseAll(pipes);
  auto lost = Finish(kRound, seconds(20));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].bytes, 5U);
  pump_.reset();
  std::string said =
      "muster: cannot write /dev/null/sub/stderr.log: Not a directory; the job goes on without "
      "it\n";
  // Files have a thread of their own, so which line comes first is open.
  EXPECT_TRUE(Err() == said + "[r0]: text\n" || Err() == "[r0]: text\n" + said) << Err();
}

// A fifo without a reader plays a file server that doesn't answer: opening it blocks.
TEST_F(LogPumpTest, ADiskThatDoesNotAnswerCostsItsOutputAlone) {
  WorkerOutput output = Output(0);
  output.stderr_file = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(output.stderr_file.c_str(), 0600), 0);
  auto pipes = pump_->Open(kRound, {output});
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, "the reason\n"));
  CloseAll(pipes);
  EXPECT_EQ(Tail(kZero), "the reason\n");
  auto lost = Finish(kRound, milliseconds(100));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].place, output.stderr_file);
  EXPECT_EQ(lost[0].bytes, 11U);
  EXPECT_EQ(Err(), "[r0]: the reason\n");
  // The next round goes on, and says again what it loses.
  pipes = pump_->Open(RoundId(2), {output});
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, "more\n"));
  CloseAll(pipes);
  lost = Finish(RoundId(2), milliseconds(100));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].bytes, 5U);
  int reader = open(output.stderr_file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  pump_.reset();
  close(reader);
}

// A disk of 1 MiB that fills up, and gets space again. It is mounted in a mount namespace that one
// thread and those it starts have to themselves, so that nothing is left mounted.
TEST_F(LogPumpTest, WritingGoesOnWhenSpaceReturns) {
  std::string disk = folder_ + "/disk";
  ASSERT_EQ(mkdir(disk.c_str(), 0700), 0);
  pump_.reset();
  bool may_mount = false;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0) return;
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    may_mount = mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!may_mount) return;
    std::ofstream(disk + "/filler") << std::string(900 << 10, 'f');
    Use(console_out_, console_err_);
    WorkerOutput output = Output(0);
    output.stdout_file = disk + "/stdout.log";
    WorkerOutput other = Output(1);
    other.stdout_file = folder_ + "/other.log";
    auto pipes = pump_->Open(kRound, {output, other});
    EXPECT_TRUE(WriteAll(pipes[0].stdout_fd, std::string(4 << 20, 'x')));
    // What the console shows has been queued for the file: the line was cut at each MiB. Files are
    // written in order, so the other's line tells that the full disk has refused all of that.
    while (Out().size() < 3 << 20) Tail(kZero);
    EXPECT_TRUE(WriteAll(pipes[1].stdout_fd, "after that\n"));
    while (Contents(other.stdout_file).empty()) Tail(kZero);
    unlink((disk + "/filler").c_str());
    EXPECT_TRUE(WriteAll(pipes[0].stdout_fd, "\nback again\n"));
    CloseAll(pipes);
    auto lost = Finish(kRound, seconds(20));
    std::string file = Contents(output.stdout_file);
    EXPECT_TRUE(file.ends_with("\nback again\n"));
    EXPECT_EQ(lost.size(), 1U);
    if (!lost.empty()) {
      EXPECT_GT(lost[0].bytes, 3U << 20);
      EXPECT_EQ(lost[0].bytes + file.size(), (4U << 20) + 12);
    }
    pump_.reset();
  }).join();
  if (!may_mount) GTEST_SKIP() << "may not mount a small disk here";
}

TEST_F(LogPumpTest, AStuckConsoleNeverBlocksAWorker) {
  int console[2];
  ASSERT_EQ(pipe2(console, O_CLOEXEC), 0);
  Use(console[1], console[1]);
  WorkerOutput output = Output(0);
  output.stdout_file = folder_ + "/stdout.log";
  auto pipes = pump_->Open(kRound, {output, Output(1)});
  std::string text;
  for (int i = 0; i < 24 << 10; ++i) text += std::string(1023, 'x') + "\n";
  EXPECT_TRUE(WriteAll(pipes[0].stdout_fd, text));
  EXPECT_TRUE(WriteAll(pipes[0].stderr_fd, "the reason\n"));
  CloseAll(pipes);
  EXPECT_EQ(Tail(kZero), "the reason\n");
  auto start = std::chrono::steady_clock::now();
  // Enough for the disk, which isn't stuck.
  auto lost = Finish(kRound, seconds(3));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].place, "the console, prefixes included");
  EXPECT_EQ(lost[0].reason, "it takes no more output");
  EXPECT_EQ(Contents(output.stdout_file), text);
  // The console's own flags are as they were: the shell shares them.
  EXPECT_EQ(fcntl(console[1], F_GETFL) & O_NONBLOCK, 0);
  // It comes back: what was kept is shown, and that something is missing, once.
  std::string shown;
  std::thread reader([&] { shown = ReadAvailable(console[0]); });
  pump_->Say("later");
  // Once this is answered all is shown; the pump's own end waits a second only.
  Finish(RoundId(2), seconds(20));
  pump_.reset();
  close(console[1]);
  reader.join();
  close(console[0]);
  EXPECT_NE(shown.find("later\n"), std::string::npos);
  EXPECT_NE(shown.find("muster: some output to stderr is not shown: it takes no more output\n"),
            std::string::npos);
}

TEST_F(LogPumpTest, AConsoleThatLagsLosesNothing) {
  int console[2];
  ASSERT_EQ(pipe2(console, O_CLOEXEC), 0);
  Use(console[1], console[1]);
  auto pipes = pump_->Open(kRound, {Output(0)});
  std::string shown;
  std::thread reader([&] { shown = ReadAvailable(console[0]); });
  std::string text;
  for (int i = 0; i < 12 << 10; ++i) text += std::string(1023, 'x') + "\n";
  EXPECT_TRUE(WriteAll(pipes[0].stdout_fd, text));
  CloseAll(pipes);
  EXPECT_TRUE(Finish(kRound, seconds(20)).empty());
  pump_.reset();
  close(console[1]);
  reader.join();
  close(console[0]);
  EXPECT_EQ(shown.size(), text.size() + (size_t{12} << 10) * 6);
}

TEST_F(LogPumpTest, AConsoleWhoseReaderHasGoneIsNoEndOfTheAgent) {
  int console[2];
  ASSERT_EQ(pipe2(console, O_CLOEXEC), 0);
  signal(SIGPIPE, SIG_DFL);
  Use(console[1], console_err_);
  close(console[0]);
  auto pipes = pump_->Open(kRound, {Output(0)});
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, "to nobody\n"));
  CloseAll(pipes);
  auto lost = Finish(kRound, seconds(20));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].reason, "Broken pipe");
  pump_.reset();
  close(console[1]);
  EXPECT_EQ(Err(), "muster: some output to stdout is not shown: Broken pipe\n");
}

TEST_F(LogPumpTest, FinishDoesNotWaitForALeftOverThatHoldsThePipe) {
  auto pipes = pump_->Open(kRound, {Output(0), Output(1)});
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, "last words"));
  EXPECT_TRUE(Finish(kRound, milliseconds(10)).empty());
  EXPECT_EQ(Out(), "[r0]: last words\n");
  CloseAll(pipes);
}

TEST_F(LogPumpTest, SaysTheAgentsOwnLinesBetweenThoseOfWorkers) {
  auto pipes = pump_->Open(kRound, {Output(0), Output(1)});
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, "half"));
  pump_->Say("muster: round 1");
  // Said, once a later call is answered.
  Tail(kOne);
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, " line\n"));
  CloseAll(pipes);
  Finish(kRound, seconds(20));
  EXPECT_EQ(Err(), "muster: round 1\n[r0]: half line\n");
}

TEST_F(LogPumpTest, OnATerminalRewritingIsRare) {
  int main_fd = -1, terminal = -1;
  ASSERT_EQ(openpty(&main_fd, &terminal, nullptr, nullptr, nullptr), 0);
  Use(terminal, terminal);
  auto pipes = pump_->Open(kRound, {Output(0)});
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + "\r";
  ASSERT_TRUE(WriteAll(pipes[0].stdout_fd, text + "done\n"));
  CloseAll(pipes);
  Finish(kRound, seconds(20));
  pump_.reset();
  close(terminal);
  // A pty gives EIO at its end.
  std::string shown = ReadAvailable(main_fd);
  close(main_fd);
  EXPECT_NE(shown.find("[r0]: done"), std::string::npos);
  // One a tenth of a second: not a thousand, however slow this machine is.
  EXPECT_LT(std::count(shown.begin(), shown.end(), '\r'), 100);
}

TEST_F(LogPumpTest, AWorkerHasBothPipesOrNone) {
  const int before = CountOpen();
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  // Room for the first worker's pipes, and half of the second's.
  const rlimit little{static_cast<rlim_t>(before) + 6, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &little), 0);
  auto pipes = pump_->Open(kRound, {Output(0), Output(1)});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(pipes[0].error, 0);
  EXPECT_GE(pipes[0].stdout_fd, 0);
  EXPECT_EQ(pipes[1].local_rank, LocalRank(1));
  EXPECT_EQ(pipes[1].error, EMFILE);
  EXPECT_EQ(pipes[1].stdout_fd, -1);
  EXPECT_EQ(pipes[1].stderr_fd, -1);
  ASSERT_TRUE(WriteAll(pipes[0].stderr_fd, "still shown\n"));
  CloseAll({pipes[0]});
  EXPECT_TRUE(Finish(kRound, seconds(20)).empty());
  EXPECT_EQ(Err(), "[r0]: still shown\n");
  EXPECT_EQ(CountOpen(), before);
}

}  // namespace
}  // namespace muster::agent
