#include "agent/output_prefix.h"

#include <string_view>

namespace muster::agent {
namespace {

constexpr char kTorchruns[] = "[${role_name}${local_rank}]:";

void ReplaceAll(std::string& text, std::string_view what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

}  // namespace

std::string OutputPrefix(const std::string& pattern, const PrefixFacts& facts) {
  std::string text = pattern.empty() ? kTorchruns : pattern;
  ReplaceAll(text, "${local_rank}", std::to_string(facts.local_rank.value));
  ReplaceAll(text, "${rank}", std::to_string(facts.rank.value));
  ReplaceAll(text, "${hostname}", facts.host);
  // Last: a role may hold anything.
  ReplaceAll(text, "${role_name}", facts.role);
  return text;
}

}  // namespace muster::agent
