// How many processors the control groups grant this process, in both versions of their file system.
// Reads files below /proc and /sys. Thread-safe.
#ifndef MUSTER_LAUNCHER_CPU_QUOTA_H_
#define MUSTER_LAUNCHER_CPU_QUOTA_H_

#include <optional>
#include <string>
#include <string_view>

namespace muster::launcher {

// The tightest of this process's group and those above it, rounded up; nothing if none limits it.
// Groups that can't be seen from a container are passed over: their limits aren't known there.
// `root` stands before each path ("" outside of tests).
std::optional<int> CpuQuota(const std::string& root);

// Of version 2's cpu.max: "150000 100000" is 2, rounded up. Nothing if it sets no limit or isn't
// understood.
std::optional<int> CpuLimitFromMax(std::string_view cpu_max);

// The same of version 1's cpu.cfs_quota_us (-1: no limit) and cpu.cfs_period_us.
std::optional<int> CpuLimitFromCfs(std::string_view quota_us, std::string_view period_us);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_CPU_QUOTA_H_
