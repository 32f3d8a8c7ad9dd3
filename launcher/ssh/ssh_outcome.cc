#include "launcher/ssh/ssh_outcome.h"

#include "base/version.h"
#include "launcher/exit_codes.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// ssh's own, for all that goes wrong with the connection.
constexpr int kSshFailed = 255;
// A shell's.
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kDisagree = 78;

std::string Said(std::string_view words) {
  return words.empty() ? "without a word" : Cat("saying ", InQuotes(words));
}

}  // namespace

HostFailure ExplainEnd(const SshHost& host, const SshPlan& plan, std::string_view ssh_command,
                       const HostEnd& end) {
  const bool is_ssh = !host.is_local && end.status == kSshFailed;
  if (end.has_greeted) {
    return {kExitUnavailable, is_ssh ? Cat("host ", host.name,
                                           ": the connection was lost before the job's end; what "
                                           "runs there ends by itself")
                                     : Cat("host ", host.name, ": muster there ended with code ",
                                           end.status, " before the job's end; was it killed?")};
  }
  if (is_ssh) {
    const std::string why = end.words.empty() ? "nothing" : InQuotes(end.words);
    return {kExitUnavailable,
            Cat("host ", host.name, " can't be reached, ssh says ", why, "; make `", ssh_command,
                " ", host.name, " true` work without a question, or leave the host out")};
  }
  if (end.status == kNotFound || end.status == kNotExecutable) {
    return {end.status,
            Cat("host ", host.name, ": no muster can be run at ", plan.remote_muster, " there (",
                end.words, "); install it there, or name its path with --remote-muster")};
  }
  return {kExitUnavailable,
          Cat("host ", host.name, ": muster at ", plan.remote_muster, " ended with code ",
              end.status, " before it was ready, ", Said(end.words),
              "; is it another version? --remote-muster names another one")};
}

std::optional<HostFailure> CheckVersion(const SshHost& host, const SshPlan& plan,
                                        std::string_view version) {
  if (version == kVersion) return std::nullopt;
  return HostFailure{
      kDisagree,
      Cat("host ", host.name, " has muster ", version, " at ", plan.remote_muster, ", this is ",
          kVersion, "; install the same one there, or name its path with --remote-muster")};
}

Others SshOutcome::OnEnd(const HostEnd& end, const std::optional<HostFailure>& failure) {
  --running_;
  if (end.job_code.has_value()) {
    has_succeeded_ = has_succeeded_ || *end.job_code == 0;
    // A host that hears of another one's leave before it gets the signal itself calls it that (75).
    const bool is_said = signal_ != 0 && stopped_code_ == 128 + signal_;
    if (!is_stopping()) {
      job_code_ = *end.job_code;
    } else if (!is_said) {
      stopped_code_ = *end.job_code;
    }
  } else if (failure.has_value() && !lost_code_.has_value() && !is_stopping()) {
    lost_code_ = failure->exit_code;
  }
  const bool has_failed = end.job_code.value_or(1) != 0;
  if (is_stopping() || running_ == 0 || running_ >= min_hosts_ || !has_failed) {
    return Others::kGoOn;
  }
  // Whoever told a verdict had it from the rendezvous, which tells the others as well; but a node
  // that was refused is alone with that.
  const bool has_verdict = end.job_code.value_or(kDisagree) != kDisagree && !end.has_problem;
  return has_verdict ? Others::kShouldEnd : Others::kMustEnd;
}

void SshOutcome::OnSignal(int number) {
  if (!is_stopping()) signal_ = number;
}

void SshOutcome::OnOwnStop(int exit_code) {
  if (!is_stopping()) own_code_ = exit_code;
}

int SshOutcome::ExitCode() const {
  // The rendezvous tells success to all that are left; one that had to go before has another code.
  if (has_succeeded_) return 0;
  if (own_code_.has_value()) return *own_code_;
  if (signal_ != 0) return stopped_code_.value_or(128 + signal_);
  if (job_code_.has_value()) return *job_code_;
  return lost_code_.value_or(kExitUnavailable);
}

}  // namespace muster::launcher
