#include "agent/core/own_verdict.h"

#include "agent/core/exit_code.h"
#include "base/signal_name.h"

namespace muster::agent {

std::string DurationText(Duration duration) {
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  if (ms > 1000 && ms % 100 == 0) {
    return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
  }
  return std::to_string(ms) + " ms";
}

Verdict VerdictOfUnreachable(const Unreachable& facts) {
  std::string why = facts.why.empty() ? "no answer" : facts.why;
  Verdict verdict;
  verdict.exit_code = kExitUnreachable;
  if (facts.was_reached_before) {
    verdict.reason = "contact with the rendezvous at " + facts.endpoint + " was lost for " +
                     DurationText(facts.tried) + " (" + why +
                     "), so this node's workers were stopped; bring the rendezvous back and start "
                     "this node again";
  } else if (facts.tried > Duration(0)) {
    verdict.reason = "the rendezvous at " + facts.endpoint + " could not be reached within " +
                     DurationText(facts.tried) + " (" + why +
                     "); check that the node that hosts it is up and that all nodes name the same "
                     "endpoint";
  } else {
    verdict.reason = "the rendezvous at " + facts.endpoint + " can't be reached (" + why +
                     "); check the endpoint's name and port";
  }
  return verdict;
}

Verdict VerdictOfRefusal(const Refused& refused) {
  Verdict verdict;
  verdict.reason = refused.message;
  verdict.exit_code =
      refused.code == RefusalCode::kNotAuthorised ? kExitNotAuthorised : kExitDisagrees;
  return verdict;
}

Verdict VerdictOfUserStop(int signal, const std::string& notice) {
  Verdict verdict;
  verdict.reason = "stopped by " + (notice.empty() ? SignalName(signal) : notice);
  verdict.exit_code = ExitForSignal(signal);
  return verdict;
}

Verdict VerdictOfDeparture(const std::string& why, int64_t step) {
  Verdict verdict;
  verdict.reason = why + ": this node left after the checkpoint of step " + std::to_string(step) +
                   "; run it again to go on";
  verdict.exit_code = kExitRunAgain;
  return verdict;
}

Verdict VerdictOfLostGuardian(const std::string& node_name, const std::string& why) {
  Verdict verdict;
  verdict.reason = "the guardian of the workers on node " + node_name + " was lost (" + why +
                   "), and its workers with it; start node " + node_name + " again";
  verdict.exit_code = kExitInternal;
  return verdict;
}

}  // namespace muster::agent
