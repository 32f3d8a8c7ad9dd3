// Takes what the workers write: whole lines with a prefix to the console, every byte to the files.
// Workers write into pipes that are always drained: a console that is slow or stuck, or a disk that
// is full or dead, costs output (counted, said once), never a worker's life. The content is bytes;
// nothing is decoded. Owned by the agent; thread-safe; one thread of its own, and one for files. No
// call blocks: answers come on the pump's thread and must only enqueue.
//
//   pipes = pump.Open(round, outputs);  runner.Spawn(round, ... pipes[i].stdout_fd ...);
//   on a worker's exit: pump.StderrTail(local_rank, ...);
//   on the round's end: pump.Finish(round, 1s, ...);
#ifndef MUSTER_AGENT_PROCESS_LOG_PUMP_H_
#define MUSTER_AGENT_PROCESS_LOG_PUMP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/queued_file.h"
#include "agent/process/worker_pipes.h"
#include "base/ids.h"
#include "base/instant.h"

namespace muster::agent {

// Where one worker's output goes. Both a file and the console: both (torchrun's --tee); a file
// alone: --redirects; neither: the output is dropped.
struct WorkerOutput {
  LocalRank local_rank;
  // Before each line on the console, as it is: "[trainer0]: ". May be empty.
  std::string stdout_prefix;
  std::string stderr_prefix;
  // Paths of files to write, or empty; what is there already stays. Missing folders above them are
  // made.
  std::string stdout_file;
  std::string stderr_file;
  bool show_stdout = true;
  bool show_stderr = true;
  // Paths of files, the same for all workers of a round, that gather the lines which hold one of
  // LogPump::Options' filters, or empty; and what stands before such a line.
  std::string filtered_stdout;
  std::string filtered_stderr;
  std::string filtered_prefix;
};

class LogPump {
 public:
  struct Options {
    // The console. Not owned; must stay open as long as the pump lives.
    int stdout_fd = 1;
    int stderr_fd = 2;
    // Lines with one of these texts go to WorkerOutput::filtered_stdout (filtered_stderr) as well.
    std::vector<std::string> stdout_filters{};
    std::vector<std::string> stderr_filters{};
    // A file of this size is put aside for a new one (agent/process/log_file.h); 0: never.
    uint64_t log_max_bytes = 0;
    // Makes of what Say() gets the line that is shown; null: it is shown as it is. Called on the
    // pump's thread.
    std::function<std::string(const std::string& text, bool is_verdict)> frame_own = nullptr;
  };
  explicit LogPump(Options options);
  // Flushes the console for at most a second, the files for at most kFileEndPatience. Calls that
  // still wait are answered first.
  ~LogPump();
  LogPump(const LogPump&) = delete;
  LogPump& operator=(const LogPump&) = delete;

  // Makes the pipes of a round's workers, in the order of `outputs`. A file that can't be opened is
  // said once on the console and its output counted as lost.
  std::vector<WorkerPipes> Open(RoundId round, const std::vector<WorkerOutput>& outputs);

  // One line of the agent's own on the console's stderr, never inside a worker's line. A newline is
  // added.
  void Say(std::string_view line, bool is_verdict = false);

  // The last lines of a worker's stderr, at most 4 KiB, whole lines where possible. Of the newest
  // round that has this local rank. What an ended worker wrote before it ended is included. Stays
  // available until the next Open().
  void StderrTail(LocalRank local_rank, const std::function<void(std::string)>& done);

  // Answers once all that the round's workers wrote is taken, shown and written. `patience` bounds
  // the first two: a left-over process may hold a pipe open, the console may be stuck. A disk that
  // is slow is waited for, one that is stuck (kFileStuckAfter) isn't. The round's pipes and files
  // are closed then. Tells what was lost in this round, each place once.
  void Finish(RoundId round, Duration patience,
              const std::function<void(std::vector<LostOutput>)>& done);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_LOG_PUMP_H_
