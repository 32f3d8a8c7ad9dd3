#include "worker_sdk/context/environment.h"

#include <sys/un.h>

#include <charconv>
#include <cstring>

#include "base/env.h"

namespace muster {
namespace {

// An abstract socket's name follows a NUL byte in sun_path.
constexpr size_t kMaxSocketName = sizeof(sockaddr_un::sun_path) - 1;

Status Invalid(const std::string& name, const std::string& problem) {
  return {StatusCode::kInvalidArgument,
          name + " " + problem + "; it is set by `muster run`: leave it as it is"};
}

}  // namespace

Result<std::optional<AgentAddress>> ReadEnvironment(const EnvironmentLookup& lookup) {
  const char* socket = lookup(env::kAgentSocket);
  const char* worker_id = lookup(env::kWorkerId);
  if (socket == nullptr && worker_id == nullptr) {
    const char* rank = lookup(env::kRank);
    if (rank == nullptr) return std::optional<AgentAddress>();
    return Status(StatusCode::kFailedPrecondition,
                  std::string("RANK is set to '") + rank +
                      "' but no muster agent started this process; start the program with "
                      "`muster run`, or unset RANK to run it as a world of one");
  }
  if (socket == nullptr) return Invalid(env::kAgentSocket, "is missing beside MUSTER_WORKER_ID");
  if (worker_id == nullptr) return Invalid(env::kWorkerId, "is missing beside MUSTER_AGENT_SOCKET");
  AgentAddress agent{socket, worker_id};
  if (agent.socket.empty()) return Invalid(env::kAgentSocket, "is empty");
  if (agent.socket.size() > kMaxSocketName) {
    return Invalid(env::kAgentSocket, "has " + std::to_string(agent.socket.size()) +
                                          " characters, more than a socket's name can have");
  }
  if (agent.worker_id.empty()) return Invalid(env::kWorkerId, "is empty");
  if (const char* text = lookup(env::kLocalRank)) {
    const char* end = text + std::strlen(text);
    int index = 0;
    auto [stop, error] = std::from_chars(text, end, index);
    if (error != std::errc() || stop != end || index < 0) {
      return Invalid(env::kLocalRank, "is '" + std::string(text) + "', no whole number");
    }
    agent.device_index = index;
  }
  return std::optional<AgentAddress>(std::move(agent));
}

}  // namespace muster
