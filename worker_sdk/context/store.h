// A small key-value table that all workers of a round share: how they find each other. Implemented
// over the agent (worker_sdk/context/context.h) and in memory for tests and one-process runs.
// Thread-safe.
#ifndef MUSTER_WORKER_SDK_CONTEXT_STORE_H_
#define MUSTER_WORKER_SDK_CONTEXT_STORE_H_

#include <chrono>
#include <string>

#include "worker_sdk/context/status.h"

namespace muster {

class Store {
 public:
  virtual ~Store() = default;

  // Sets `key`; a second Set replaces the value. Errors: kAborted (the round is over),
  // kUnavailable (no contact to the rendezvous), kInvalidArgument (over 1 MiB).
  virtual Status Set(const std::string& key, const std::string& value) = 0;

  // The value of `key`, waiting until some worker sets it. Errors: kDeadlineExceeded, and as Set.
  virtual Result<std::string> Get(const std::string& key, std::chrono::milliseconds wait) = 0;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_STORE_H_
