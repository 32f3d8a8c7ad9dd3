// Finds the core dump of a worker that has ended. Reads file systems, so it may block: not for a
// loop's thread. Functions; thread-safe.
#ifndef MUSTER_AGENT_CORE_FILE_H_
#define MUSTER_AGENT_CORE_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace muster::agent {

struct DumpQuestion {
  int64_t pid = 0;
  int signal = 0;
  // Seconds since 1970: older files are of another process.
  int64_t not_before_s = 0;
  // The worker's working directory.
  std::string folder;
  // Elsewhere in tests.
  std::string proc = "/proc";
};

struct DumpAnswer {
  // The dump, checked to be this process's; empty if it isn't a file, or can't be found.
  std::string path;
  // A phrase for people when `path` is empty: who got it, or where it was looked for in vain.
  std::string remark;
};

DumpAnswer FindCoreFile(const DumpQuestion& question);

// The process that an ELF core file is of. Nothing if it is no such file, or can't be read.
std::optional<int64_t> PidOfCore(const std::string& path);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_FILE_H_
