// Looks up what the launch plan needs to know of this machine. Reads files below /proc, /sys and
// /dev; starts nothing. Thread-safe.
#ifndef MUSTER_LAUNCHER_MACHINE_FACTS_H_
#define MUSTER_LAUNCHER_MACHINE_FACTS_H_

#include <string>

#include "launcher/launch_plan.h"

namespace muster::launcher {

// Both cost a few milliseconds.
struct FactsWanted {
  // Processors and GPUs.
  bool counts = false;
  bool topology = false;
};

// Of this process, now.
MachineFacts LookUpMachine(const FactsWanted& wanted);

// GPUs named by CUDA_VISIBLE_DEVICES (null: not set) when the machine has `present`: entries up to
// the first one that CUDA would not take (it ignores the rest, too).
int CountVisibleGpus(const char* visible_devices, int present);

// GPUs of this machine that workers will see. Cheap where there is none.
int CountGpus();

// This host's name, as other nodes are shown it.
std::string HostName();

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_MACHINE_FACTS_H_
