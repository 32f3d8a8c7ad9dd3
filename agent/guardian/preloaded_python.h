// A Python process that has imported what the workers need, and forks them, beforehand where it
// can: in place of fork and exec a worker then starts in milliseconds. What it runs is
// agent/guardian/preload.py. Owned by the guardian's loop and used on its thread only; the process
// dies with the guardian. The workers become children of the guardian, as all others.
#ifndef MUSTER_AGENT_GUARDIAN_PRELOADED_PYTHON_H_
#define MUSTER_AGENT_GUARDIAN_PRELOADED_PYTHON_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/guardian/process_tree.h"
#include "agent/guardian/worker_fork.h"
#include "base/instant.h"

namespace muster::agent::guardian {

class PreloadedPython {
 public:
  PreloadedPython() = default;
  ~PreloadedPython();
  PreloadedPython(const PreloadedPython&) = delete;
  PreloadedPython& operator=(const PreloadedPython&) = delete;

  // Starts importing. `image` is that of a worker ("python3 -u [-m] SCRIPT ..."), with the
  // environment that all workers share; `modules` are separated by commas. Call it once.
  void Start(const WorkerImage& image, const std::string& modules);

  // Not ready yet: workers had better wait for it. Ends with TakeNews() at the latest after two
  // minutes, for which IsOverdue() is to be asked at next_wakeup().
  bool is_loading() const { return state_ == State::kLoading; }
  bool is_ready() const { return state_ == State::kReady; }
  // To be polled for input; -1: there is none.
  int socket() const { return socket_; }
  // To be called when the socket is readable.
  void Receive();
  Instant next_wakeup() const { return is_loading() ? deadline_ : Instant::Never(); }
  // Gives up on imports that take for ever.
  void TimePassed(Instant now);

  // Forks a worker. Nothing if that wasn't possible, and then it isn't ready any more: the worker
  // is to be started afresh, as all others. Waits for the answer, for two seconds at most.
  std::optional<pid_t> Fork(const WorkerImage& image);

  bool IsItsPid(pid_t pid) const { return pid_ > 0 && pid == pid_; }
  // Is not a worker, nor left over from one: the process itself, or a spare that waits in its
  // session to become a worker.
  bool IsItsOwn(const Process& process) const {
    return IsItsPid(process.pid) || IsItsPid(process.session);
  }
  // It was reaped.
  void Ended();

  // Why workers start afresh from now on, once.
  std::optional<std::string> TakeNews();

 private:
  enum class State { kNone, kLoading, kReady, kLost };

  void Lose(const std::string& why);
  // A line from the process, without its end; nothing if none is whole.
  std::optional<std::string> NextLine();
  bool Send(const WorkerImage& image);

  State state_ = State::kNone;
  pid_t pid_ = -1;
  int socket_ = -1;
  int exec_pipe_ = -1;
  Instant deadline_ = Instant::Never();
  std::string received_;
  std::optional<std::string> news_;
};

}  // namespace muster::agent::guardian

#endif  // MUSTER_AGENT_GUARDIAN_PRELOADED_PYTHON_H_
