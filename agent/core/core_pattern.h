// Where the kernel puts a core dump, as /proc/sys/kernel/core_pattern says (core(5)). Pure.
#ifndef MUSTER_AGENT_CORE_CORE_PATTERN_H_
#define MUSTER_AGENT_CORE_CORE_PATTERN_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::agent {

struct DumpFacts {
  int64_t pid = 0;
  // The pid is the same in the first pid namespace (%P).
  bool pid_is_global = false;
  int64_t uid = 0;
  int64_t gid = 0;
  int signal = 0;
  std::string host_name;
  // Where a relative name is meant: the worker's working directory.
  std::string folder;
};

struct DumpPlace {
  // Not empty: the kernel handed the dump to this program, with its arguments, or to a socket
  // ("@/path").
  std::string receiver;
  // Otherwise: the file as a pattern for glob(3). '*' stands for what can't be known afterwards
  // (time, thread, name of the program). Empty: none is written.
  std::string glob;
  // The file's name has the pid in it.
  bool names_pid = false;
};

// `uses_pid`: /proc/sys/kernel/core_uses_pid, which appends it where the pattern doesn't say it.
DumpPlace FindDumpPlace(std::string_view pattern, bool uses_pid, const DumpFacts& facts);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_CORE_PATTERN_H_
