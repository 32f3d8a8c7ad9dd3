#include "launcher/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int64_t Number(std::string_view text) {
  text = Strip(text);
  int64_t value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() ? value : 0;
}

// A mount of a cgroup file system: where it is, and which group is at its top.
struct Mount {
  std::string top;
  std::string folder;
};

// The mount whose file system is `type` and, for version 1, whose options hold `controller`.
std::optional<Mount> FindMount(const std::string& mounts, std::string_view type,
                               std::string_view controller) {
  for (std::string_view line : Split(mounts, '\n')) {
    // "36 35 0:30 /top /folder options ... - type source super-options"
    std::vector<std::string_view> words = Split(line, ' ');
    auto dash = std::ranges::find(words, "-");
    if (words.size() < 5 || words.end() - dash < 4 || *(dash + 1) != type) continue;
    std::vector<std::string_view> options = Split(*(dash + 3), ',');
    if (!controller.empty() && std::ranges::find(options, controller) == options.end()) continue;
    return Mount{.top = std::string(words[3]), .folder = std::string(words[4])};
  }
  return std::nullopt;
}

// The path of this process's group in the hierarchy that has `controller` ("": version 2's).
std::optional<std::string> GroupPath(const std::string& groups, std::string_view controller) {
  for (std::string_view line : Split(groups, '\n')) {
    size_t first = line.find(':');
    size_t second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    std::vector<std::string_view> controllers = Split(names, ',');
    bool is_it = controller.empty()
                     ? names.empty()
                     : std::ranges::find(controllers, controller) != controllers.end();
    if (is_it) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// What `limit_of` says of each folder from the group's up to the mount's top.
std::optional<int> Tightest(const std::string& root, const Mount& mount, std::string path,
                            const std::function<std::optional<int>(const std::string&)>& limit_of) {
  // A container may have its own group mounted as the top.
  if (mount.top != "/" && path.starts_with(mount.top)) path.erase(0, mount.top.size());
  if (path == "/") path.clear();
  std::optional<int> tightest;
  while (true) {
    std::optional<int> limit = limit_of(root + mount.folder + path);
    if (limit.has_value()) tightest = std::min(*limit, tightest.value_or(INT_MAX));
    size_t slash = path.rfind('/');
    if (slash == std::string::npos) return tightest;
    path.resize(slash);
  }
}

std::optional<int> Processors(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, INT_MAX));
}

}  // namespace

std::optional<int> CpuLimitFromMax(std::string_view cpu_max) {
  std::vector<std::string_view> parts = Split(Strip(cpu_max), ' ');
  if (parts.size() != 2) return std::nullopt;
  return Processors(Number(parts[0]), Number(parts[1]));
}

std::optional<int> CpuLimitFromCfs(std::string_view quota_us, std::string_view period_us) {
  return Processors(Number(quota_us), Number(period_us));
}

std::optional<int> CpuQuota(const std::string& root) {
  const std::string groups = ReadText(root + "/proc/self/cgroup");
  const std::string mounts = ReadText(root + "/proc/self/mountinfo");
  std::optional<int> tightest;
  auto take = [&](std::optional<int> limit) {
    if (limit.has_value()) tightest = std::min(*limit, tightest.value_or(INT_MAX));
  };
  std::optional<std::string> path = GroupPath(groups, "");
  std::optional<Mount> mount = FindMount(mounts, "cgroup2", "");
  if (path.has_value() && mount.has_value()) {
    take(Tightest(root, *mount, *path, [](const std::string& folder) {
      return CpuLimitFromMax(ReadText(folder + "/cpu.max"));
    }));
  }
  path = GroupPath(groups, "cpu");
  mount = FindMount(mounts, "cgroup", "cpu");
  if (path.has_value() && mount.has_value()) {
    take(Tightest(root, *mount, *path, [](const std::string& folder) {
      return CpuLimitFromCfs(ReadText(folder + "/cpu.cfs_quota_us"),
                             ReadText(folder + "/cpu.cfs_period_us"));
    }));
  }
  return tightest;
}

}  // namespace muster::launcher
