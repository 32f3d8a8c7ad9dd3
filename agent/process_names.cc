#include "agent/process_names.h"

#include <algorithm>
#include <fstream>

namespace muster::agent {
namespace {

constexpr size_t kMostNamed = 8;

}  // namespace

std::string ProcessNames(const std::vector<int64_t>& pids) {
  std::string text;
  for (size_t i = 0; i < std::min(pids.size(), kMostNamed); ++i) {
    const std::string pid = std::to_string(pids[i]);
    std::ifstream file("/proc/" + pid + "/comm");
    std::string name;
    std::getline(file, name);
    text += (i == 0 ? "" : ", ") + pid + (name.empty() ? "" : " (" + name + ")");
  }
  if (pids.size() > kMostNamed) {
    text += " and " + std::to_string(pids.size() - kMostNamed) + " more";
  }
  return text;
}

}  // namespace muster::agent
