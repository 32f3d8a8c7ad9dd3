// `muster run --hosts`: starts muster on each host, tells each its plan once all are ready, passes
// their output and our signals on, and ends with the job's exit code. What is printed once for all
// hosts (the verdict, notices) is sorted out here. One thread; called in a process that has no
// other.
#ifndef MUSTER_LAUNCHER_SSH_SSH_JOB_H_
#define MUSTER_LAUNCHER_SSH_SSH_JOB_H_

#include <csignal>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/process/console_sink.h"
#include "base/instant.h"
#include "launcher/run_options.h"
#include "launcher/ssh/piped_process.h"
#include "launcher/ssh/remote_record.h"
#include "launcher/ssh/said_once.h"
#include "launcher/ssh/ssh_outcome.h"
#include "launcher/ssh/ssh_plan.h"

namespace muster::launcher {

class SshJob {
 public:
  // The arguments must outlive it.
  SshJob(const RunOptions& options, const SshFacts& facts, const SshPlan& plan);
  ~SshJob();
  SshJob(const SshJob&) = delete;
  SshJob& operator=(const SshJob&) = delete;

  // Returns when nothing runs any more, or when the user didn't want to wait for it.
  int Run();

 private:
  struct Host;

  // False: one can't be started, and it was said.
  bool StartAll();
  void Step();
  void TakeSignals();
  void OnStopSignal(int number);
  // A turn's worth; `all`: what is left in the pipes.
  void ReadFrom(Host& host, bool all);
  // Whether hosts aren't read from until the console has caught up.
  bool IsBehind() const;
  // Until the greeting: what is said before it is no output.
  void TakeGreeting(Host& host, std::string bytes);
  void TakeErrors(Host& host, const std::string& bytes);
  void OnRecord(Host& host, const Record& record);
  void SendPlansOnceAllAreReady();
  void OnEnded(Host& host, int status);
  // Ends the others for a reason of ours.
  void StopAll(int exit_code);
  void CheckDeadlines();
  // Ends the connections that outlive the job on their host.
  void EndLingering();
  // Once for the hosts that agree with the job's exit code.
  void ShowVerdict(int exit_code);
  void ShowVerdictOf(Host& host);
  void SayWhatIsNotShown();
  void Say(const std::string& sentence);
  // Once for all hosts that say the same.
  void SayOfHost(const Host& host, const std::string& text);
  void Show(agent::ConsoleSink& sink, const std::string& text);
  Instant Now() const;

  const RunOptions& options_;
  const SshFacts& facts_;
  const SshPlan& plan_;
  std::vector<std::unique_ptr<Host>> hosts_;
  SshOutcome outcome_;
  sigset_t taken_;
  int signal_fd_ = -1;
  int stop_count_ = 0;
  // Of the host that is read from first, which changes: none waits for a slow console longer than
  // the others.
  size_t first_read_ = 0;
  bool loss_is_said_ = false;
  std::set<std::string> shown_verdicts_;
  bool plans_are_sent_ = false;
  // All must be ready by then, and have ended by then.
  Instant ready_by_;
  Instant end_expected_by_ = Instant::Never();
  Instant ended_by_ = Instant::Never();
  SaidOnce said_;
  agent::ConsoleSink out_;
  // Unused where both streams lead to one place.
  agent::ConsoleSink own_err_;
  agent::ConsoleSink* err_;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_SSH_JOB_H_
