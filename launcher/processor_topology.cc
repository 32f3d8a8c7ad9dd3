#include "launcher/processor_topology.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

// Larger than any machine's.
constexpr int kMostProcessors = 8192;

std::optional<int> Number(std::string_view text) {
  text = Strip(text);
  int value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() ? std::optional(value)
                                                                   : std::nullopt;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  std::ranges::sort(names);
  return names;
}

int LowestOf(const std::string& list_file, int otherwise) {
  const std::string text = ReadText(list_file);
  std::set<int> numbers = ParseRanges(text);
  return numbers.empty() ? otherwise : *numbers.begin();
}

// Of the largest cache that isn't for instructions alone.
int LastLevelCache(const std::string& cpu_folder, int processor) {
  int level = -1;
  int lowest = processor;
  for (const std::string& name : NamesIn(cpu_folder + "/cache")) {
    if (!name.starts_with("index")) continue;
    const std::string cache = cpu_folder + "/cache/" + name;
    if (Strip(ReadText(cache + "/type")) == "Instruction") continue;
    int its_level = Number(ReadText(cache + "/level")).value_or(-1);
    if (its_level <= level) continue;
    level = its_level;
    lowest = LowestOf(cache + "/shared_cpu_list", processor);
  }
  return lowest;
}

// A GPU as the driver lists it: by its place on the bus, which is NVML's order and, unless the
// devices differ, CUDA's.
struct Gpu {
  std::string uuid;
  int node = 0;
};

std::vector<Gpu> ListGpus(const std::string& root) {
  std::vector<Gpu> gpus;
  const std::string driver = root + "/proc/driver/nvidia/gpus";
  for (const std::string& place : NamesIn(driver)) {
    Gpu gpu;
    const std::string text = ReadText(driver + "/" + place + "/information");
    for (std::string_view line : Split(text, '\n')) {
      if (line.starts_with("GPU UUID:")) gpu.uuid = Strip(line.substr(9));
    }
    // A machine with one node says -1.
    const std::string node = ReadText(root + "/sys/bus/pci/devices/" + place + "/numa_node");
    gpu.node = std::max(Number(node).value_or(0), 0);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

// As CUDA reads the variable: it ends at the first entry that names no device.
std::vector<int> VisibleNodes(const std::vector<Gpu>& gpus, const char* visible) {
  std::vector<int> nodes;
  if (visible == nullptr) {
    for (const Gpu& gpu : gpus) nodes.push_back(gpu.node);
    return nodes;
  }
  const std::string list = visible;
  for (std::string_view entry : Split(list, ',')) {
    entry = Strip(entry);
    auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) {
      return entry.starts_with("GPU-") && gpu.uuid.starts_with(entry);
    });
    int index =
        found != gpus.end() ? static_cast<int>(found - gpus.begin()) : Number(entry).value_or(-1);
    if (index < 0 || index >= static_cast<int>(gpus.size())) break;
    nodes.push_back(gpus[static_cast<size_t>(index)].node);
  }
  return nodes;
}

}  // namespace

std::set<int> ParseRanges(std::string_view text) {
  std::set<int> numbers;
  for (std::string_view range : Split(text, ',')) {
    std::vector<std::string_view> ends = Split(range, '-');
    std::optional<int> first = Number(ends.front());
    std::optional<int> last = Number(ends.back());
    if (ends.size() > 2 || !first || !last || *first < 0 || *last >= kMostProcessors) continue;
    for (int i = *first; i <= *last; ++i) numbers.insert(i);
  }
  return numbers;
}

ProcessorTopology ReadTopology(const std::string& root, const std::set<int>& allowed,
                               const char* visible_gpus) {
  ProcessorTopology topology;
  for (int number : allowed) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(number);
    Processor processor;
    processor.socket =
        std::max(Number(ReadText(folder + "/topology/physical_package_id")).value_or(0), 0);
    processor.core = LowestOf(folder + "/topology/thread_siblings_list", number);
    processor.cache = LastLevelCache(folder, number);
    topology.processors[number] = processor;
  }
  const std::string nodes = root + "/sys/devices/system/node";
  for (const std::string& name : NamesIn(nodes)) {
    if (!name.starts_with("node")) continue;
    std::optional<int> node = Number(std::string_view(name).substr(4));
    if (!node) continue;
    const std::string list = ReadText(nodes + "/" + name + "/cpulist");
    for (int number : ParseRanges(list)) {
      auto found = topology.processors.find(number);
      if (found != topology.processors.end()) found->second.node = *node;
    }
  }
  topology.gpu_nodes = VisibleNodes(ListGpus(root), visible_gpus);
  return topology;
}

}  // namespace muster::launcher
