// The verdicts that an agent reaches by itself, when no rendezvous can tell it one: each a sentence
// that names what happened and what to do next. Pure functions.
#ifndef MUSTER_AGENT_CORE_OWN_VERDICT_H_
#define MUSTER_AGENT_CORE_OWN_VERDICT_H_

#include <cstdint>
#include <string>

#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::agent {

struct Unreachable {
  std::string endpoint;
  // The last reason, as the client phrased it; may be empty.
  std::string why;
  // How long it was tried; zero if trying was hopeless.
  Duration tried{0};
  bool was_reached_before = false;
};

Verdict VerdictOfUnreachable(const Unreachable& facts);
Verdict VerdictOfRefusal(const Refused& refused);
// `notice`: what announced it, if it wasn't the signal itself.
Verdict VerdictOfUserStop(int signal, const std::string& notice = "");
// This node left after the job had saved `step`.
Verdict VerdictOfDeparture(const std::string& why, int64_t step);
Verdict VerdictOfLostGuardian(const std::string& node_name, const std::string& why);

// "600 s", "250 ms".
std::string DurationText(Duration duration);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_OWN_VERDICT_H_
