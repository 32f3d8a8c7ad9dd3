// Names of signals for people: "SIGKILL". Pure; the C library's sigabbrev_np() isn't everywhere.
#ifndef MUSTER_AGENT_CORE_SIGNAL_NAME_H_
#define MUSTER_AGENT_CORE_SIGNAL_NAME_H_

#include <string>

namespace muster::agent {

// "SIGKILL" for 9; "SIGRTMIN+1" for 35; "signal 99" for a number that has no name.
std::string SignalName(int signal);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_SIGNAL_NAME_H_
