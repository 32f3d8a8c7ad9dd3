#include "launcher/machine_facts.h"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

#include "base/entropy.h"
#include "base/env.h"
#include "launcher/cpu_quota.h"
#include "launcher/nvml.h"
#include "launcher/processor_topology.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// Nothing unless `text` is decimal digits alone, with or without a minus sign.
std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

// Those that this process may run on.
std::set<int> AllowedCpus() {
  // Larger than any machine's; the plain cpu_set_t ends at 1,024.
  constexpr int kMost = 8192;
  std::set<int> numbers;
  cpu_set_t* set = CPU_ALLOC(kMost);
  size_t size = CPU_ALLOC_SIZE(kMost);
  if (set != nullptr && sched_getaffinity(0, size, set) == 0) {
    for (int i = 0; i < kMost; ++i) {
      if (CPU_ISSET_S(i, size, set)) numbers.insert(i);
    }
  }
  CPU_FREE(set);
  return numbers;
}

// Device files, not /proc/driver/nvidia: a container sees all of the host's GPUs there.
int CountGpuDevices() {
  DIR* directory = opendir("/dev");
  if (directory == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = readdir(directory)) {
    std::string_view name = entry->d_name;
    if (!name.starts_with("nvidia")) continue;
    name.remove_prefix(6);
    if (WholeNumber(name).has_value()) ++count;
  }
  closedir(directory);
  return count;
}

std::string FreshRunId() {
  std::array<unsigned char, 16> bytes;
  base::FillRandom(bytes.data(), bytes.size());
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string id;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) id.push_back('-');
    id.push_back(kDigits[bytes[i] >> 4]);
    id.push_back(kDigits[bytes[i] & 15]);
  }
  return id;
}

}  // namespace

int CountVisibleGpus(const char* visible_devices, int present) {
  if (visible_devices == nullptr) return present;
  int count = 0;
  for (std::string_view entry : Split(visible_devices, ',')) {
    entry = Strip(entry);
    int64_t index = WholeNumber(entry).value_or(-1);
    bool is_name = entry.starts_with("GPU-") || entry.starts_with("MIG-");
    if (!is_name && (index < 0 || index >= present)) break;
    ++count;
  }
  return count;
}

int CountGpus() {
  // The driver's own device: without it no folder has to be read.
  if (access("/dev/nvidiactl", F_OK) != 0) return 0;
  std::optional<int> present = CountGpusByNvml();
  return CountVisibleGpus(std::getenv(env::kVisibleGpus),
                          present.has_value() ? *present : CountGpuDevices());
}

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  // With room for the last NUL: a name may have all 64 characters.
  if (gethostname(name.data(), name.size()) != 0) return "localhost";
  return name.data();
}

MachineFacts LookUpMachine(const FactsWanted& wanted) {
  MachineFacts facts;
  facts.fresh_run_id = FreshRunId();
  if (const char* python = std::getenv(env::kPythonExec)) facts.python_exec = python;
  facts.omp_threads_are_set = std::getenv(env::kOmpNumThreads) != nullptr;
  const char* visible_gpus = std::getenv(env::kVisibleGpus);
  if (visible_gpus != nullptr) facts.visible_gpus = visible_gpus;
  if (!wanted.counts && !wanted.topology) return facts;
  const std::set<int> allowed = AllowedCpus();
  if (wanted.topology) facts.topology = ReadTopology("", allowed, visible_gpus);
  if (!wanted.counts) return facts;
  facts.cpu_count =
      std::min(std::max(static_cast<int>(allowed.size()), 1), CpuQuota("").value_or(INT_MAX));
  facts.gpu_count = CountGpus();
  return facts;
}

}  // namespace muster::launcher
