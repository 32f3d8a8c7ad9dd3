// Where the kernel keeps account of a process's memory, read from what /proc and the cgroup file
// systems (versions 1 and 2) say. Pure functions over their text; whatever makes no sense is
// "unknown", never an error: these are facts for people.
#ifndef MUSTER_AGENT_CORE_MEMORY_CGROUP_H_
#define MUSTER_AGENT_CORE_MEMORY_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

struct MemoryCgroup {
  int version = 2;
  // The process's own cgroup as a folder of the file system.
  std::string folder;
  // Where that file system is mounted: limits of all folders from `folder` up to here count.
  std::string mount_point;

  // `folder` and those above it, the own one first.
  std::vector<std::string> UpToTheRoot() const;
  // Names of the files in each: the counter of kills, the limit, the highest use so far.
  const char* events_file() const { return version == 1 ? "memory.oom_control" : "memory.events"; }
  const char* limit_file() const { return version == 1 ? "memory.limit_in_bytes" : "memory.max"; }
  const char* peak_file() const {
    return version == 1 ? "memory.max_usage_in_bytes" : "memory.peak";
  }

  friend bool operator==(const MemoryCgroup&, const MemoryCgroup&) = default;
};

// From /proc/<pid>/cgroup and /proc/self/mountinfo. Where version 1 has the memory controller, its
// hierarchy counts. Nothing if the cgroup isn't visible from here.
std::optional<MemoryCgroup> FindMemoryCgroup(std::string_view cgroups, std::string_view mounts);

// Kills for want of memory so far in this cgroup: `oom_kill` of memory.events or
// memory.oom_control. Nothing where the kernel doesn't count them (before 4.13).
std::optional<uint64_t> OomKills(std::string_view events);

// memory.max and memory.limit_in_bytes; nothing for "no limit".
std::optional<uint64_t> MemoryLimit(std::string_view text);

// A file that holds one number, such as memory.peak.
std::optional<uint64_t> WholeFileNumber(std::string_view text);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_MEMORY_CGROUP_H_
