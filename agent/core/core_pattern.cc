#include "agent/core/core_pattern.h"

#include <algorithm>

namespace muster::agent {
namespace {

std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// The kernel writes '/' within a name as '!'.
std::string AsName(std::string text) {
  std::replace(text.begin(), text.end(), '/', '!');
  return text;
}

// What `specifier` stands for, as a pattern; empty for one that the kernel drops.
std::string Expanded(char specifier, const DumpFacts& facts) {
  switch (specifier) {
    case '%':
      return "%";
    case 'p':
      return std::to_string(facts.pid);
    case 'P':
      return facts.pid_is_global ? std::to_string(facts.pid) : "*";
    case 'u':
      return std::to_string(facts.uid);
    case 'g':
      return std::to_string(facts.gid);
    case 's':
      return std::to_string(facts.signal);
    case 'h':
      return Escaped(AsName(facts.host_name));
    // Time, names of program and thread, thread ids, limit, mode, processor: gone with the process.
    case 't':
    case 'e':
    case 'E':
    case 'f':
    case 'i':
    case 'I':
    case 'c':
    case 'd':
    case 'C':
      return "*";
    default:
      return "";
  }
}

}  // namespace

DumpPlace FindDumpPlace(std::string_view pattern, bool uses_pid, const DumpFacts& facts) {
  while (!pattern.empty() && (pattern.back() == '\n' || pattern.back() == ' ')) {
    pattern.remove_suffix(1);
  }
  DumpPlace place;
  if (pattern.starts_with('|') || pattern.starts_with('@')) {
    if (pattern.front() == '|') pattern.remove_prefix(1);
    size_t begin = pattern.find_first_not_of(' ');
    place.receiver = begin == std::string_view::npos ? "" : std::string(pattern.substr(begin));
    return place;
  }
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      name += Escaped(pattern.substr(i, 1));
    } else if (++i < pattern.size()) {
      name += Expanded(pattern[i], facts);
      // %P from within a namespace is a '*'.
      if (pattern[i] == 'p' || (pattern[i] == 'P' && facts.pid_is_global)) place.names_pid = true;
    }
  }
  bool has_pid = pattern.find("%p") != std::string_view::npos;
  if (uses_pid && !has_pid) {
    name += "." + std::to_string(facts.pid);
    place.names_pid = true;
  }
  if (name.empty()) return place;
  place.glob = name.front() == '/' ? name : Escaped(facts.folder) + "/" + name;
  return place;
}

}  // namespace muster::agent
