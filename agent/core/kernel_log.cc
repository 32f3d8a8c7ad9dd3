#include "agent/core/kernel_log.h"

#include <charconv>

namespace muster::agent {
namespace {

// The prefix is level + 8 * facility; the kernel's own facility is 0.
constexpr unsigned kFirstForeignPrefix = 8;

}  // namespace

std::optional<OomKill> ParseOomKill(std::string_view record) {
  unsigned prefix = 0;
  const char* end = record.data() + record.size();
  if (std::from_chars(record.data(), end, prefix).ec != std::errc()) return std::nullopt;
  if (prefix >= kFirstForeignPrefix) return std::nullopt;
  size_t text_at = record.find(';');
  if (text_at == std::string_view::npos) return std::nullopt;
  std::string_view text = record.substr(text_at + 1);

  constexpr std::string_view kOfCgroup = "Memory cgroup out of memory: Killed process ";
  constexpr std::string_view kOfMachine = "Out of memory: Killed process ";
  OomKill kill;
  kill.is_of_cgroup = text.starts_with(kOfCgroup);
  if (!kill.is_of_cgroup && !text.starts_with(kOfMachine)) return std::nullopt;
  text.remove_prefix(kill.is_of_cgroup ? kOfCgroup.size() : kOfMachine.size());
  auto [after, error] = std::from_chars(text.data(), end, kill.pid);
  if (error != std::errc() || kill.pid <= 0 || after == end || *after != ' ') return std::nullopt;
  return kill;
}

}  // namespace muster::agent
