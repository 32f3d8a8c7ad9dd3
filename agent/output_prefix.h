// What stands before each line that a worker writes to the console. Pure.
#ifndef MUSTER_AGENT_OUTPUT_PREFIX_H_
#define MUSTER_AGENT_OUTPUT_PREFIX_H_

#include <string>
#include <vector>

#include "base/ids.h"

namespace muster::agent {

// torchrun's "[role0]:", or what TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE in `environment` asks for,
// with
// ${role_name}, ${local_rank} and ${rank} filled in.
std::string OutputPrefix(const std::vector<std::string>& environment, const std::string& role,
                         LocalRank local_rank, Rank rank);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_OUTPUT_PREFIX_H_
