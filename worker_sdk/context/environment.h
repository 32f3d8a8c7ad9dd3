// What the launcher told this worker in its environment. Pure: the variables are an argument.
#ifndef MUSTER_WORKER_SDK_CONTEXT_ENVIRONMENT_H_
#define MUSTER_WORKER_SDK_CONTEXT_ENVIRONMENT_H_

#include <functional>
#include <optional>
#include <string>

#include "worker_sdk/context/status.h"

namespace muster {

// How to reach the agent that started this worker.
struct AgentAddress {
  // Abstract Unix socket, without the leading NUL byte.
  std::string socket;
  std::string worker_id;
  // LOCAL_RANK; none if a wrapper took it away.
  std::optional<int> device_index = {};

  friend bool operator==(const AgentAddress&, const AgentAddress&) = default;
};

// The value of an environment variable, or null: std::getenv, or a table.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// The agent; none if nobody launched this process. Errors: kInvalidArgument (one of the variables
// is missing, empty or too long: named), kFailedPrecondition (another launcher: the message says
// what to do).
Result<std::optional<AgentAddress>> ReadEnvironment(const EnvironmentLookup& lookup);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_ENVIRONMENT_H_
