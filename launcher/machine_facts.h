// Looks up what the launch plan needs to know of this machine. Reads files below /proc, /sys and
// /dev; starts nothing. Thread-safe.
#ifndef MUSTER_LAUNCHER_MACHINE_FACTS_H_
#define MUSTER_LAUNCHER_MACHINE_FACTS_H_

#include <optional>
#include <string>
#include <string_view>

#include "launcher/launch_plan.h"

namespace muster::launcher {

// Of this process, now. Counts are looked up only if `counts_wanted`: they cost a few milliseconds.
MachineFacts LookUpMachine(bool counts_wanted);

// Processors granted by a cgroup's cpu.max ("150000 100000" is 2: rounded up), at least 1. Nothing
// if it sets no limit or isn't understood.
std::optional<int> CpuLimitFromCgroup(std::string_view cpu_max);

// GPUs named by CUDA_VISIBLE_DEVICES (null: not set) when the machine has `present`: entries up to
// the first one that CUDA would not take (it ignores the rest, too).
int CountVisibleGpus(const char* visible_devices, int present);

// GPUs of this machine that workers will see. Cheap where there is none.
int CountGpus();

// This host's name, as other nodes are shown it.
std::string HostName();

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_MACHINE_FACTS_H_
