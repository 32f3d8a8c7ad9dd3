// What tests with real workers share: a command line as a worker, a pipe that tells when all who
// hold it are gone, and bounded waits for processes. Functions and small values; not thread-safe.
#ifndef MUSTER_AGENT_PROCESS_WORKER_FIXTURE_H_
#define MUSTER_AGENT_PROCESS_WORKER_FIXTURE_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "agent/process/process_runner.h"

namespace muster::agent {

inline constexpr int kPatienceMs = 20000;

// A pipe whose write end the workers and all their descendants inherit: its end of file proves that
// none of them is left.
class LifePipe {
 public:
  LifePipe();
  ~LifePipe();
  LifePipe(const LifePipe&) = delete;
  LifePipe& operator=(const LifePipe&) = delete;

  // A new descriptor of the write end, to give away.
  int NewWriteEnd() const;
  // This process no longer holds the write end.
  void CloseWriteEnd();
  // Reads until `text` has come, or the end. False if the time is over before.
  bool WaitForText(const std::string& text, int patience_ms = kPatienceMs);
  // Reads until all write ends are closed. False if the time is over before.
  bool WaitForEnd(int patience_ms = kPatienceMs);
  const std::string& text() const { return text_; }

 private:
  // True on end of file.
  bool ReadUntil(const std::function<bool()>& is_enough, int patience_ms, bool* is_over);

  int read_end_ = -1;
  int write_end_ = -1;
  std::string text_;
};

// `sh -c script` with PATH, MUSTER_WORKER_ID and the given variables as environment; stdout and
// stderr go to `pipe`, or to /dev/null.
WorkerCommand ShellWorker(int local_rank, const std::string& script, const LifePipe* pipe);

// A worker id that no other test uses: "<prefix>/<round>/<local rank>".
std::string TestWorkerPrefix();

// Runs `body` in a fork of this process, which must have one thread.
pid_t RunInChild(const std::function<void()>& body);
// Waits for the end of a child; its status as of waitpid(2), or -1 if the time is over before.
int WaitForChild(pid_t pid, int patience_ms = kPatienceMs);
// Waits for the end of any process, child or not.
bool WaitForProcess(pid_t pid, int patience_ms = kPatienceMs);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_WORKER_FIXTURE_H_
