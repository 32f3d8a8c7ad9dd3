#include "launcher/machine_facts.h"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/entropy.h"
#include "base/env.h"
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

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int CpusByAffinity() {
  // Larger than any machine's; the plain cpu_set_t ends at 1,024.
  constexpr int kMost = 8192;
  cpu_set_t* set = CPU_ALLOC(kMost);
  size_t size = CPU_ALLOC_SIZE(kMost);
  int count = 1;
  if (set != nullptr && sched_getaffinity(0, size, set) == 0) count = CPU_COUNT_S(size, set);
  CPU_FREE(set);
  return std::max(count, 1);
}

// The tightest cpu.max from this process's cgroup up to the root (cgroup v2).
std::optional<int> CpusByCgroup() {
  std::string path;
  const std::string cgroups = ReadText("/proc/self/cgroup");
  for (std::string_view line : Split(cgroups, '\n')) {
    if (line.starts_with("0::")) path = std::string(line.substr(3));
  }
  std::optional<int> tightest;
  while (true) {
    std::optional<int> limit = CpuLimitFromCgroup(ReadText("/sys/fs/cgroup" + path + "/cpu.max"));
    if (limit.has_value()) tightest = std::min(limit.value(), tightest.value_or(INT_MAX));
    size_t slash = path.rfind('/');
    if (slash == std::string::npos) return tightest;
    path.resize(slash);
  }
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

std::optional<int> CpuLimitFromCgroup(std::string_view cpu_max) {
  std::vector<std::string_view> parts = Split(Strip(cpu_max), ' ');
  if (parts.size() != 2) return std::nullopt;
  std::optional<int64_t> quota = WholeNumber(parts[0]), period = WholeNumber(parts[1]);
  if (quota.value_or(0) <= 0 || period.value_or(0) <= 0) return std::nullopt;
  int64_t cpus = (*quota - 1) / *period + 1;
  return static_cast<int>(std::min<int64_t>(cpus, INT_MAX));
}

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
  return CountVisibleGpus(std::getenv("CUDA_VISIBLE_DEVICES"), CountGpuDevices());
}

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

MachineFacts LookUpMachine(bool counts_wanted) {
  MachineFacts facts;
  facts.fresh_run_id = FreshRunId();
  if (const char* python = std::getenv(env::kPythonExec)) facts.python_exec = python;
  if (!counts_wanted) return facts;
  facts.cpu_count = std::min(CpusByAffinity(), CpusByCgroup().value_or(INT_MAX));
  facts.gpu_count = CountGpus();
  return facts;
}

}  // namespace muster::launcher
