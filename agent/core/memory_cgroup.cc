#include "agent/core/memory_cgroup.h"

#include <charconv>
#include <utility>

namespace muster::agent {
namespace {

// Version 1 says "no limit" as the largest number of pages, in bytes; nobody has half of that.
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

// Takes the text up to `separator` off the front.
std::string_view TakeUntil(std::string_view& text, char separator) {
  size_t end = text.find(separator);
  std::string_view taken = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return taken;
}

bool HasWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (TakeUntil(list, ',') == word) return true;
  }
  return false;
}

// mountinfo writes blanks, newlines and backslashes as \ooo.
std::string Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    bool is_escape = text[i] == '\\' && i + 3 < text.size();
    if (is_escape) {
      auto [end, error] = std::from_chars(&text[i + 1], &text[i + 1] + 3, code, 8);
      is_escape = error == std::errc() && end == &text[i + 1] + 3 && code < 256;
    }
    if (is_escape) i += 3;
    out += is_escape ? static_cast<char>(code) : text[i];
  }
  return out;
}

struct Mount {
  std::string root;
  std::string point;
};

// "31 23 0:28 /root /point options [optional ...] - type source superoptions"
std::optional<Mount> FindMount(std::string_view mounts, std::string_view type,
                               std::string_view controller) {
  while (!mounts.empty()) {
    std::string_view line = TakeUntil(mounts, '\n');
    size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view after = line.substr(dash + 3);
    if (TakeUntil(after, ' ') != type) continue;
    TakeUntil(after, ' ');
    if (!controller.empty() && !HasWord(after, controller)) continue;
    for (int i = 0; i < 3; ++i) TakeUntil(line, ' ');
    std::string root = Unescaped(TakeUntil(line, ' '));
    return Mount{std::move(root), Unescaped(TakeUntil(line, ' '))};
  }
  return std::nullopt;
}

// "4:memory:/a/b" of version 1, "0::/a/b" of version 2.
std::optional<std::string> FindPath(std::string_view cgroups, int version) {
  while (!cgroups.empty()) {
    std::string_view line = TakeUntil(cgroups, '\n');
    std::string_view number = TakeUntil(line, ':');
    std::string_view controllers = TakeUntil(line, ':');
    bool is_wanted =
        version == 1 ? HasWord(controllers, "memory") : number == "0" && controllers.empty();
    if (is_wanted && line.starts_with('/')) return std::string(line);
  }
  return std::nullopt;
}

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (rest.find_first_not_of(" \t\n") != std::string_view::npos) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> MemoryCgroup::UpToTheRoot() const {
  std::vector<std::string> folders{folder};
  while (folders.back().size() > mount_point.size()) {
    std::string parent = folders.back().substr(0, folders.back().rfind('/'));
    if (parent.size() < mount_point.size()) break;
    folders.push_back(std::move(parent));
  }
  return folders;
}

std::optional<MemoryCgroup> FindMemoryCgroup(std::string_view cgroups, std::string_view mounts) {
  for (int version : {1, 2}) {
    std::optional<std::string> path = FindPath(cgroups, version);
    std::optional<Mount> mount =
        version == 1 ? FindMount(mounts, "cgroup", "memory") : FindMount(mounts, "cgroup2", "");
    if (!path || !mount) continue;
    // In a container the mount may begin below the hierarchy's root.
    if (mount->root != "/") {
      bool is_below = path->starts_with(mount->root) &&
                      (path->size() == mount->root.size() || (*path)[mount->root.size()] == '/');
      if (!is_below) return std::nullopt;
      path->erase(0, mount->root.size());
    }
    // "/../x" is a cgroup above the namespace's root.
    if (path->find("/..") != std::string::npos) return std::nullopt;
    if (*path == "/") path->clear();
    return MemoryCgroup{
        .version = version, .folder = mount->point + *path, .mount_point = mount->point};
  }
  return std::nullopt;
}

std::optional<uint64_t> OomKills(std::string_view events) {
  while (!events.empty()) {
    std::string_view line = TakeUntil(events, '\n');
    if (TakeUntil(line, ' ') == "oom_kill") return Number(line);
  }
  return std::nullopt;
}

std::optional<uint64_t> MemoryLimit(std::string_view text) {
  std::optional<uint64_t> limit = Number(text);
  return limit && *limit < kUnlimited ? limit : std::nullopt;
}

std::optional<uint64_t> WholeFileNumber(std::string_view text) { return Number(text); }

}  // namespace muster::agent
