// What stands before each line that a worker writes to the console. Pure.
#ifndef MUSTER_AGENT_OUTPUT_PREFIX_H_
#define MUSTER_AGENT_OUTPUT_PREFIX_H_

#include <string>

#include "base/ids.h"

namespace muster::agent {

struct PrefixFacts {
  std::string role{};
  LocalRank local_rank{};
  Rank rank{};
  std::string host{};
};

// `pattern` with ${role_name}, ${local_rank}, ${rank} and ${hostname} filled in, with or without
// braces; "$$" is "$", and what isn't known stays (as Python's Template.safe_substitute, which
// torchrun uses). Empty: torchrun's own, "[role0]:".
std::string OutputPrefix(const std::string& pattern, const PrefixFacts& facts);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_OUTPUT_PREFIX_H_
