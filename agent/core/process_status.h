// What /proc/<pid>/status tells of a process or thread. Pure.
#ifndef MUSTER_AGENT_CORE_PROCESS_STATUS_H_
#define MUSTER_AGENT_CORE_PROCESS_STATUS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::agent {

struct ProcessStatus {
  std::string name;
  // R, S, D, T (stopped), t (traced), Z; '?' if it isn't there.
  char state = '?';
  // Bit n - 1: signal n has a function of the program's.
  uint64_t caught = 0;

  bool Catches(int signal) const {
    return signal > 0 && signal <= 64 && ((caught >> (signal - 1)) & 1) != 0;
  }
  bool IsStopped() const { return state == 'T' || state == 't'; }
};

ProcessStatus ParseProcessStatus(std::string_view text);

// "waits in the kernel at futex_wait_queue (S)", "runs (R)". `place`: /proc/<pid>/wchan, "0" or
// empty when it isn't known.
std::string StateText(char state, std::string_view place);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_PROCESS_STATUS_H_
