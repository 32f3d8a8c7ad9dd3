#include "agent/output_prefix.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace muster::agent {
namespace {

constexpr char kTorchruns[] = "[${role_name}${local_rank}]:";

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";

// The name in "name" or "{name}" at the beginning of `rest`, and how much of it that takes.
std::pair<std::string_view, size_t> NameAt(std::string_view rest) {
  const bool is_braced = rest.starts_with('{');
  const std::string_view text = rest.substr(is_braced ? 1 : 0);
  const size_t length = std::min(text.find_first_not_of(kLetters), text.size());
  if (!is_braced) return {text.substr(0, length), length};
  if (length == text.size() || text[length] != '}') return {};
  return {text.substr(0, length), length + 2};
}

}  // namespace

std::string OutputPrefix(const std::string& pattern, const PrefixFacts& facts) {
  const std::map<std::string_view, std::string> known = {
      {"local_rank", std::to_string(facts.local_rank.value)},
      {"rank", std::to_string(facts.rank.value)},
      {"hostname", facts.host},
      {"role_name", facts.role}};
  std::string_view rest = pattern.empty() ? std::string_view(kTorchruns) : pattern;
  std::string text;
  for (size_t dollar = rest.find('$'); dollar != std::string_view::npos; dollar = rest.find('$')) {
    text += rest.substr(0, dollar);
    rest.remove_prefix(dollar + 1);
    const auto [name, size] = NameAt(rest);
    const auto found = known.find(name);
    if (found != known.end()) {
      text += found->second;
      rest.remove_prefix(size);
    } else {
      text += '$';
      if (rest.starts_with('$')) rest.remove_prefix(1);
    }
  }
  return text += rest;
}

}  // namespace muster::agent
