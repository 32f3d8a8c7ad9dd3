#include "agent/process/log_pump.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "agent/process/console_sink.h"
#include "agent/process/file_thread.h"
#include "agent/process/line_assembler.h"
#include "agent/process/line_filter.h"
#include "agent/process/pump_mailbox.h"
#include "base/clock.h"

namespace muster::agent {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Reads of one stream in one turn, so that a loud worker doesn't starve the others.
constexpr int kReadsInTurn = 8;
constexpr size_t kTailBytes = 4096;
// What a worker wrote is longer there, by the prefixes of its lines.
constexpr char kConsolePlace[] = "the console, prefixes included";
constexpr Duration kFlushPatience = std::chrono::seconds(1);
// How long a round's files may take to be closed on a disk that is merely slow.
constexpr Duration kClosePatience = std::chrono::seconds(60);
// What gathers lines of all of a round's workers; their streams point to it.
struct FilteredFile {
  FilteredFile(uint64_t its_number, RoundId of_round, QueuedFile::Options options)
      : number(its_number), round(of_round), file(std::move(options)) {}

  // Never used twice.
  const uint64_t number;
  const RoundId round;
  QueuedFile file;
  // What is missing in it; none until it is closed.
  std::optional<LostOutput> loss;
};

// One worker's stdout or stderr, from its pipe to the console and the file.
struct Stream {
  Stream(int fd, QueuedFile::Options file_options, LineAssembler lines_from)
      : read_fd(fd), file(std::move(file_options)), lines(std::move(lines_from)) {}
  ~Stream() {
    if (read_fd >= 0) close(read_fd);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Never used twice.
  uint64_t number = 0;
  RoundId round;
  LocalRank local_rank;
  bool is_stderr = false;
  // -1 once it has ended.
  int read_fd;
  QueuedFile file;
  // What is missing in the file; none until it is closed.
  std::optional<LostOutput> file_loss;
  LineAssembler lines;
  // Null: none of its lines are gathered.
  FilteredFile* filtered = nullptr;
  std::optional<LineFilter> filter;
  // Null: not shown.
  ConsoleSink* sink = nullptr;
  std::string tail;
};

struct Finishing {
  RoundId round;
  Instant deadline;
  std::function<void(std::vector<LostOutput>)> done;
  // Its pipes are closed, and its files are being closed.
  bool is_closing = false;
};

std::string LastLines(const std::string& text) {
  if (text.size() <= kTailBytes) return text;
  std::string last = text.substr(text.size() - kTailBytes);
  // Begin with a whole line, unless it is one endless line.
  size_t newline = last.find('\n');
  return newline + 1 < last.size() ? last.substr(newline + 1) : last;
}

}  // namespace

// All but Post() runs on the pump's thread: the calls of the public interface reach it as tasks.
class LogPump::Loop {
 public:
  explicit Loop(Options options)
      : options_(std::move(options)),
        stderr_sink_(options_.stderr_fd),
        own_stdout_sink_(options_.stdout_fd),
        stdout_sink_(ConsoleSink::LeadToSamePlace(options_.stdout_fd, options_.stderr_fd)
                         ? &stderr_sink_
                         : &own_stdout_sink_),
        thread_([this] { Serve(); }) {}

  ~Loop() {
    while (!Post([this] { quit_at_ = Now() + kFlushPatience; })) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    thread_.join();
    for (Finishing& finishing : finishing_) finishing.done(LossesOf(finishing.round));
  }

  // Any thread.
  bool Post(std::function<void()> task) { return mailbox_->Post(std::move(task)); }

  void AddStream(RoundId round, const WorkerOutput& output, bool is_stderr, int read_fd,
                 bool is_alone) {
    ConsoleSink* sink = is_stderr ? &stderr_sink_ : stdout_sink_;
    LineAssembler lines({.prefix = is_stderr ? output.stderr_prefix : output.stdout_prefix,
                         .is_terminal = sink->is_terminal(),
                         .shows_unfinished = is_alone});
    Stream& stream = streams_.emplace_back(
        read_fd, FileOptions(is_stderr ? output.stderr_file : output.stdout_file),
        std::move(lines));
    stream.number = ++last_number_;
    stream.round = round;
    stream.local_rank = output.local_rank;
    stream.is_stderr = is_stderr;
    bool is_shown = is_stderr ? output.show_stderr : output.show_stdout;
    if (is_shown) stream.sink = sink;
    const auto& texts = is_stderr ? options_.stderr_filters : options_.stdout_filters;
    const std::string& gathered = is_stderr ? output.filtered_stderr : output.filtered_stdout;
    if (texts.empty() || gathered.empty()) return;
    stream.filtered = &FilteredFileAt(round, gathered);
    stream.filter.emplace(output.filtered_prefix, texts);
  }

  // A new round's workers begin with nothing of an older round's.
  void ForgetEnded() {
    streams_.remove_if([this](const Stream& stream) {
      bool is_finishing = std::any_of(finishing_.begin(), finishing_.end(),
                                      [&](const Finishing& f) { return f.round == stream.round; });
      return stream.read_fd < 0 && !is_finishing;
    });
    filtered_.remove_if([this](const FilteredFile& filtered) {
      return std::ranges::none_of(
          streams_, [&](const Stream& stream) { return stream.filtered == &filtered; });
    });
  }

  void Say(const std::string& line, bool is_verdict = false) {
    const auto& frame = options_.frame_own;
    stderr_sink_.AddAlways(Now(), (frame ? frame(line, is_verdict) : line) + "\n");
  }

  std::string Tail(LocalRank local_rank) {
    Stream* newest = nullptr;
    for (Stream& stream : streams_) {
      bool matches = stream.is_stderr && stream.local_rank == local_rank;
      if (matches && (newest == nullptr || newest->round <= stream.round)) newest = &stream;
    }
    if (newest == nullptr) return {};
    // Bounded by what was in the pipe: the worker has ended, or may write for ever.
    ReadTurn(newest);
    return LastLines(newest->tail);
  }

  void Finish(Finishing finishing) { finishing_.push_back(std::move(finishing)); }

 private:
  static Instant Now() { return SystemClock().Now(); }

  // The thread for files begins with the first of them: most jobs have none.
  QueuedFile::Options FileOptions(const std::string& path) {
    if (path.empty()) return {};
    if (!files_) files_.emplace([mailbox = mailbox_] { mailbox->Wake(); });
    return {.path = path,
            .max_bytes = options_.log_max_bytes,
            .thread = &*files_,
            .say = [this, mailbox = mailbox_](const auto& line) {
              mailbox->Post([this, line] { Say(line); });
            }};
  }

  FilteredFile& FilteredFileAt(RoundId round, const std::string& path) {
    auto found = std::ranges::find_if(filtered_, [&](const FilteredFile& filtered) {
      return filtered.round == round && filtered.file.path() == path;
    });
    return found != filtered_.end()
               ? *found
               : filtered_.emplace_back(++last_number_, round, FileOptions(path));
  }

  bool IsHeldUp(const Stream& stream, Instant now) const {
    bool by_console = stream.sink != nullptr && stream.sink->HoldsUp(now);
    return by_console || (stream.file.has_path() && files_->HoldsUp(now));
  }

  void Serve() {
    sigset_t all;
    sigfillset(&all);
    // Signals are for other threads; SIGPIPE is for none.
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (true) {
      WaitAndRead();
      RunTasks();
      Instant now = Now();
      for (Stream& stream : streams_) {
        if (now >= stream.lines.NextWakeup())
          Show(&stream, [&](std::string* out) { stream.lines.Tick(now, out); });
      }
      FlushSinks();
      FinishRounds(now);
      bool is_flushed = stderr_sink_.backlog_size() + stdout_sink_->backlog_size() == 0;
      if (!quit_at_.IsNever() && (is_flushed || now >= quit_at_)) return;
    }
  }

  void WaitAndRead() {
    Instant now = Now();
    std::vector<pollfd> polled;
    polled.push_back({mailbox_->wake_fd(), POLLIN, 0});
    polled.push_back({stderr_sink_.poll_fd(), POLLOUT, 0});
    polled.push_back({own_stdout_sink_.poll_fd(), POLLOUT, 0});
    std::vector<Stream*> polled_streams;
    for (Stream& stream : streams_) {
      if (stream.read_fd < 0 || IsHeldUp(stream, now)) continue;
      polled.push_back({stream.read_fd, POLLIN, 0});
      polled_streams.push_back(&stream);
    }
    Instant wakeup = NextWakeup(now);
    timespec timeout{};
    if (!wakeup.IsNever()) {
      int64_t ns = std::max<int64_t>((wakeup - now).count(), 0);
      timeout = {ns / 1'000'000'000, ns % 1'000'000'000};
    }
    if (ppoll(polled.data(), polled.size(), wakeup.IsNever() ? nullptr : &timeout, nullptr) < 0) {
      return;
    }
    uint64_t count = 0;
    [[maybe_unused]] ssize_t ignored = read(mailbox_->wake_fd(), &count, sizeof(count));
    for (size_t i = 0; i < polled_streams.size(); ++i) {
      if (polled[i + 3].revents != 0) ReadTurn(polled_streams[i]);
    }
  }

  Instant NextWakeup(Instant now) const {
    Instant wakeup = quit_at_;
    for (const Finishing& finishing : finishing_) {
      wakeup = std::min(wakeup, finishing.deadline);
      if (finishing.is_closing && files_) wakeup = std::min(wakeup, files_->StuckAt());
    }
    if (files_ && files_->HoldsUp(now)) wakeup = std::min(wakeup, files_->HoldsUpUntil());
    for (const Stream& stream : streams_) wakeup = std::min(wakeup, stream.lines.NextWakeup());
    for (const ConsoleSink* sink : {&stderr_sink_, &own_stdout_sink_}) {
      if (sink->HoldsUp(now)) wakeup = std::min(wakeup, sink->HoldsUpUntil());
    }
    return wakeup;
  }

  void RunTasks() {
    for (const auto& task : mailbox_->TakeAll()) task();
  }

  void ReadTurn(Stream* stream) {
    char buffer[kReadBytes];
    for (int i = 0; i < kReadsInTurn && stream->read_fd >= 0; ++i) {
      ssize_t got = read(stream->read_fd, buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (got <= 0) {
        EndStream(stream);
        return;
      }
      Take(stream, std::string_view(buffer, static_cast<size_t>(got)));
    }
  }

  void Take(Stream* stream, std::string_view bytes) {
    if (stream->is_stderr) {
      stream->tail += bytes;
      if (stream->tail.size() > 2 * kTailBytes) {
        stream->tail.erase(0, stream->tail.size() - kTailBytes - 1);
      }
    }
    stream->file.Write(bytes);
    Gather(stream, [&](std::string* out) { stream->filter->Feed(bytes, out); });
    Instant now = Now();
    Show(stream, [&](std::string* out) { stream->lines.Feed(now, bytes, out); });
  }

  template <class MakeText>
  void Show(Stream* stream, MakeText make_text) {
    if (stream->sink == nullptr) return;
    shown_.clear();
    make_text(&shown_);
    stream->sink->Add(Now(), shown_);
  }

  template <class MakeText>
  void Gather(Stream* stream, MakeText make_text) {
    if (stream->filtered == nullptr) return;
    gathered_.clear();
    make_text(&gathered_);
    if (!gathered_.empty()) stream->filtered->file.Write(gathered_);
  }

  void EndStream(Stream* stream) {
    if (stream->read_fd < 0) return;
    close(stream->read_fd);
    stream->read_fd = -1;
    Show(stream, [&](std::string* out) { stream->lines.End(out); });
    Gather(stream, [&](std::string* out) { stream->filter->End(out); });
  }

  void FlushSinks() {
    for (ConsoleSink* sink : {&stderr_sink_, &own_stdout_sink_}) {
      sink->Flush(Now());
    }
    for (const auto& [sink, name] :
         {std::pair{&stderr_sink_, "stderr"}, {stdout_sink_, "stdout"}}) {
      if (sink->lost_bytes() == 0 || sink->backlog_size() > 0 || console_loss_is_said_) continue;
      console_loss_is_said_ = true;
      // Without a number: more may be lost, and the round's end tells how much it was in all.
      Say(std::string("muster: some output to ") + name + " is not shown: " + sink->why_lost());
    }
  }

  void FinishRounds(Instant now) {
    bool is_shown = stderr_sink_.backlog_size() + stdout_sink_->backlog_size() == 0;
    for (auto it = finishing_.begin(); it != finishing_.end();) {
      bool is_drained = true;
      bool is_closed = true;
      for (const Stream& stream : streams_) {
        if (stream.round != it->round) continue;
        is_drained = is_drained && stream.read_fd < 0;
        is_closed = is_closed && stream.file_loss;
      }
      for (const FilteredFile& filtered : filtered_) {
        is_closed = is_closed && (filtered.round != it->round || filtered.loss);
      }
      if (!it->is_closing && ((is_drained && is_shown) || now >= it->deadline)) {
        CloseRound(it->round);
        it->is_closing = true;
        it->deadline = now + kClosePatience;
        continue;  // without files it is done
      }
      bool is_given_up = now >= it->deadline || (files_ && now >= files_->StuckAt());
      if (!it->is_closing || (!is_closed && !is_given_up)) {
        ++it;
        continue;
      }
      it->done(LossesOf(it->round));
      it = finishing_.erase(it);
    }
  }

  void CloseRound(RoundId round) {
    for (Stream& stream : streams_) {
      if (stream.round != round) continue;
      ReadTurn(&stream);
      EndStream(&stream);
      if (!stream.file.has_path()) {
        stream.file_loss.emplace();
        continue;
      }
      uint64_t number = stream.number;
      stream.file.Close([this, mailbox = mailbox_, number](const LostOutput& lost) {
        mailbox->Post([this, number, lost] { NoteClosed(number, lost); });
      });
    }
    for (FilteredFile& filtered : filtered_) {
      if (filtered.round != round) continue;
      filtered.file.Close(
          [this, mailbox = mailbox_, number = filtered.number](const LostOutput& lost) {
            mailbox->Post([this, number, lost] { NoteClosed(number, lost); });
          });
    }
  }

  // The stream may be gone: nobody waits for it any more then.
  void NoteClosed(uint64_t number, const LostOutput& lost) {
    for (Stream& stream : streams_) {
      if (stream.number == number) stream.file_loss = lost;
    }
    for (FilteredFile& filtered : filtered_) {
      if (filtered.number == number) filtered.loss = lost;
    }
  }

  std::vector<LostOutput> LossesOf(RoundId round) {
    std::vector<LostOutput> lost;
    for (const Stream& stream : streams_) {
      if (stream.round != round) continue;
      LostOutput of_file = stream.file_loss ? *stream.file_loss : stream.file.LostSoFar();
      if (of_file.bytes > 0) lost.push_back(std::move(of_file));
    }
    for (const FilteredFile& filtered : filtered_) {
      if (filtered.round != round) continue;
      LostOutput of_file = filtered.loss ? *filtered.loss : filtered.file.LostSoFar();
      if (of_file.bytes > 0) lost.push_back(std::move(of_file));
    }
    std::string why = stderr_sink_.why_lost();
    uint64_t bytes = stderr_sink_.lost_bytes();
    if (stdout_sink_ != &stderr_sink_) {
      bytes += stdout_sink_->lost_bytes();
      if (why.empty()) why = stdout_sink_->why_lost();
    }
    if (bytes > console_loss_told_)
      lost.push_back({kConsolePlace, why, bytes - console_loss_told_});
    console_loss_told_ = bytes;
    return lost;
  }

  const Options options_;
  // The thread's own.
  ConsoleSink stderr_sink_;
  ConsoleSink own_stdout_sink_;
  // own_stdout_sink_, or stderr_sink_ where both lead to the same place: one order for both.
  ConsoleSink* const stdout_sink_;
  // Outlives the streams, whose files are closed on it.
  std::optional<FileThread> files_;
  std::list<FilteredFile> filtered_;
  std::list<Stream> streams_;
  uint64_t last_number_ = 0;
  std::vector<Finishing> finishing_;
  std::string shown_;
  std::string gathered_;
  bool console_loss_is_said_ = false;
  uint64_t console_loss_told_ = 0;
  Instant quit_at_ = Instant::Never();

  const std::shared_ptr<PumpMailbox> mailbox_ = std::make_shared<PumpMailbox>();

  // Last: it uses the others.
  std::thread thread_;
};

LogPump::LogPump(Options options) : loop_(std::make_unique<Loop>(std::move(options))) {}

LogPump::~LogPump() = default;

std::vector<WorkerPipes> LogPump::Open(RoundId round, const std::vector<WorkerOutput>& outputs) {
  std::vector<WorkerPipes> pipes;
  bool is_alone = outputs.size() == 1;
  loop_->Post([loop = loop_.get()] { loop->ForgetEnded(); });
  for (const WorkerOutput& output : outputs) {
    int out = -1;
    int err = -1;
    WorkerPipes& ends = pipes.emplace_back(MakeWorkerPipes(output.local_rank, &out, &err));
    if (ends.error != 0) continue;
    bool is_taken = loop_->Post([=, loop = loop_.get()] {
      loop->AddStream(round, output, /*is_stderr=*/false, out, is_alone);
      loop->AddStream(round, output, /*is_stderr=*/true, err, is_alone);
    });
    if (is_taken) continue;
    for (int fd : {out, err, ends.stdout_fd, ends.stderr_fd}) close(fd);
    // The thread is over its bound of tasks.
    ends = WorkerPipes{.local_rank = output.local_rank, .error = EAGAIN};
  }
  return pipes;
}

void LogPump::Say(std::string_view line, bool is_verdict) {
  loop_->Post(
      [loop = loop_.get(), text = std::string(line), is_verdict] { loop->Say(text, is_verdict); });
}

void LogPump::StderrTail(LocalRank local_rank, const std::function<void(std::string)>& done) {
  bool is_asked = loop_->Post([=, loop = loop_.get()] { done(loop->Tail(local_rank)); });
  if (!is_asked) done({});
}

void LogPump::Finish(RoundId round, Duration patience,
                     const std::function<void(std::vector<LostOutput>)>& done) {
  Instant deadline = SystemClock().Now() + patience;
  bool is_asked = loop_->Post([=, loop = loop_.get()] { loop->Finish({round, deadline, done}); });
  if (!is_asked) done({});
}

}  // namespace muster::agent
