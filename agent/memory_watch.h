// Finds out whether the kernel killed a worker for want of memory: reads the kill counter of the
// workers' cgroups and the kernel's log before they start, and again when one has ended. Reads
// kernel files only (/proc, cgroup file systems, /dev/kmsg), which don't wait for a disk; one that
// can't be read is a fact that is unknown. Owned by the agent's loop; not thread-safe.
#ifndef MUSTER_AGENT_MEMORY_WATCH_H_
#define MUSTER_AGENT_MEMORY_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "agent/core/kernel_log.h"
#include "agent/core/kill_evidence.h"
#include "agent/core/memory_cgroup.h"
#include "base/ids.h"
#include "base/job_types.h"

namespace muster::agent {

class MemoryWatch {
 public:
  // Elsewhere in tests.
  struct Options {
    std::string proc = "/proc";
    std::string kernel_log = "/dev/kmsg";
  };
  MemoryWatch() : MemoryWatch(Options{}) {}
  explicit MemoryWatch(Options options);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // Before a round's workers are started: they inherit this process's cgroup.
  void RoundStarts();
  // The worker may have been put elsewhere by then.
  void WorkerStarted(LocalRank local_rank, int64_t pid);
  KillEvidence Explain(LocalRank local_rank, int64_t pid, const WorkerExit& exit);

 private:
  struct Account {
    MemoryCgroup cgroup;
    std::optional<uint64_t> kills_before;
    uint64_t kills_told = 0;
  };

  // Of the process that /proc calls so.
  std::optional<MemoryCgroup> CgroupOf(const std::string& process) const;
  // Adds the cgroup if it is new; null if there is none.
  Account* AccountOf(const std::optional<MemoryCgroup>& cgroup);
  void ReadLog();
  void TakeLimit(const MemoryCgroup& cgroup, KillFacts& facts) const;

  const Options options_;
  int log_ = -1;
  // Nothing was lost from the log since the round's start, and its pids are those that we see.
  bool log_is_whole_ = false;
  std::map<int64_t, OomKill> logged_;
  // /proc/self/mountinfo at the round's start.
  std::string mounts_;
  // By folder. Of one round.
  std::map<std::string, Account> accounts_;
  std::string own_folder_;
  std::map<LocalRank, std::string> folders_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_MEMORY_WATCH_H_
