// What a job over ssh comes to: a sentence for each host that was never begun or was lost, when the
// others have to be ended, and the one exit code. Pure; used by launcher/ssh/ssh_job.h, one thread.
#ifndef MUSTER_LAUNCHER_SSH_SSH_OUTCOME_H_
#define MUSTER_LAUNCHER_SSH_SSH_OUTCOME_H_

#include <optional>
#include <string>
#include <string_view>

#include "launcher/ssh/ssh_plan.h"

namespace muster::launcher {

// How it ended on one host.
struct HostEnd {
  // Of `muster run` there; nothing: it didn't come to say it.
  std::optional<int> job_code{};
  // Muster there couldn't begin, and has said why.
  bool has_problem = false;
  // It was ready to begin.
  bool has_greeted = false;
  // Exit code of ssh, as a shell's; of muster where the host is this one.
  int status = 0;
  // The last line on stderr.
  std::string words{};
};

struct HostFailure {
  int exit_code = 0;
  // One sentence that names the host and what to do.
  std::string text{};
};

// Of a host that ended without a word about the job.
HostFailure ExplainEnd(const SshHost& host, const SshPlan& plan, std::string_view ssh_command,
                       const HostEnd& end);
// Nothing if muster there is the same version.
std::optional<HostFailure> CheckVersion(const SshHost& host, const SshPlan& plan,
                                        std::string_view version);

enum class Others {
  kGoOn,
  // They end by themselves if all is well.
  kShouldEnd,
  // They would wait in vain.
  kMustEnd,
};

class SshOutcome {
 public:
  SshOutcome(int hosts, int min_hosts) : running_(hosts), min_hosts_(min_hosts) {}

  // `failure`: of a host without a job code.
  Others OnEnd(const HostEnd& end, const std::optional<HostFailure>& failure);
  // The user has stopped the job.
  void OnSignal(int number);
  // We have, for a reason of ours.
  void OnOwnStop(int exit_code);

  bool is_stopping() const { return signal_ != 0 || own_code_.has_value(); }
  // We have stopped it, so that what hosts say of their end is of no interest.
  bool is_own_stop() const { return own_code_.has_value(); }
  int running() const { return running_; }
  // The job's, once all have ended.
  int ExitCode() const;

 private:
  int running_;
  const int min_hosts_;
  bool has_succeeded_ = false;
  // Of the hosts that ended before anybody asked them to, the newest one's.
  std::optional<int> job_code_;
  // And of those that ended when asked to; the signal's own code counts before others.
  std::optional<int> stopped_code_;
  // Of the first host that was lost, while there was no job code.
  std::optional<int> lost_code_;
  std::optional<int> own_code_;
  int signal_ = 0;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_SSH_OUTCOME_H_
