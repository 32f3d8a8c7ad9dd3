#include "agent/output_prefix.h"

#include <string_view>

namespace muster::agent {
namespace {

constexpr std::string_view kTemplateVariable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=";
constexpr std::string_view kDefaultTemplate = "[${role_name}${local_rank}]:";

void ReplaceAll(std::string& text, std::string_view what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

}  // namespace

std::string OutputPrefix(const std::vector<std::string>& environment, const std::string& role,
                         LocalRank local_rank, Rank rank) {
  std::string text(kDefaultTemplate);
  for (const std::string& entry : environment) {
    if (entry.starts_with(kTemplateVariable)) text = entry.substr(kTemplateVariable.size());
  }
  ReplaceAll(text, "${local_rank}", std::to_string(local_rank.value));
  ReplaceAll(text, "${rank}", std::to_string(rank.value));
  // Last: a role may hold anything.
  ReplaceAll(text, "${role_name}", role);
  return text;
}

}  // namespace muster::agent
