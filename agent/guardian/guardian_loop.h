// The guardian's loop: turns frames from the agent, ends of children and the timer into the events
// of its machine, and carries out the effects. Lives in the guardian process only, on its one
// thread.
#ifndef MUSTER_AGENT_GUARDIAN_GUARDIAN_LOOP_H_
#define MUSTER_AGENT_GUARDIAN_GUARDIAN_LOOP_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "agent/guardian/guardian_channel.h"
#include "agent/guardian/guardian_machine.h"
#include "agent/guardian/preloaded_python.h"
#include "agent/guardian/process_tree.h"
#include "agent/guardian/worker_fork.h"

namespace muster::agent::guardian {

class GuardianLoop {
 public:
  struct Options {
    // Taken over.
    int socket = -1;
    pid_t agent_pid = -1;
    bool ignores_child_signal = false;
  };
  // All signals must be blocked.
  explicit GuardianLoop(const Options& options);
  // Serves until the machine says Exit, and exits.
  [[noreturn]] void Run();

 private:
  void Wait();
  void TakeFrames();
  void TakeFrame(Frame frame);
  void SpawnFrom(Frame frame);
  void PreloadFrom(BodyReader& body);
  // Starts what has waited for the preloaded Python, once that is ready or lost.
  void TakePreload();
  // Of workers that wait for it, and were told to stop before.
  void DropWaiting();
  bool HasChildren() const;
  void SignalFrom(BodyReader& body);
  void TakeExecResults();
  // Reads a child's exec pipe, which is at its end or holds an errno.
  void TakeExecResult(pid_t pid);
  void Reap();
  void LookForLeft();

  void Step(const Event& event);
  void Perform(const Fork& fork);
  void Perform(const SignalGroup& group);
  void Perform(const LookForLeftOvers& look);
  void Perform(const SignalProcesses& processes);
  void Perform(const ReportStarted& report);
  void Perform(const ReportFailedToStart& report);
  void Perform(const ReportExited& report);
  void Perform(const ReportLeft& report);
  void Perform(const ReportGone& report);
  void Perform(const Exit& exit);
  void Report(FrameKind kind, BodyWriter& body);

  GuardianChannel channel_;
  GuardianMachine machine_;
  // The image of the spawn frame in hand.
  WorkerImage image_;
  PreloadedPython preloaded_;
  // Spawn frames that have come while it was loading.
  std::deque<Frame> waiting_;
  int dev_null_;
  int child_signals_;
  int agent_pidfd_;
  int timer_;
  // Children that have not yet become their program: pid to exec pipe.
  std::map<pid_t, int> exec_pipes_;
  // What the newest look found.
  std::map<int64_t, Process> seen_;
  std::string folder_;
  bool must_look_ = false;
  bool agent_is_gone_ = false;
};

}  // namespace muster::agent::guardian

#endif  // MUSTER_AGENT_GUARDIAN_GUARDIAN_LOOP_H_
