// Names processes for people. Reads /proc; thread-safe.
#ifndef MUSTER_AGENT_PROCESS_NAMES_H_
#define MUSTER_AGENT_PROCESS_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace muster::agent {

// "4711 (python3), 4712 (sh)", of many the first and how many more; a process that is gone by its
// pid alone.
std::string ProcessNames(const std::vector<int64_t>& pids);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_NAMES_H_
