// Names of signals for people: "SIGKILL". Pure; the C library's sigabbrev_np() isn't everywhere.
#ifndef MUSTER_BASE_SIGNAL_NAME_H_
#define MUSTER_BASE_SIGNAL_NAME_H_

#include <string>

namespace muster {

// "SIGKILL" for 9; "SIGRTMIN+1" for 35; "signal 99" for a number that has no name.
std::string SignalName(int signal);

}  // namespace muster

#endif  // MUSTER_BASE_SIGNAL_NAME_H_
