// A Store within one process: for worlds of one, and for tests whose ranks are threads.
// Thread-safe.
#ifndef MUSTER_WORKER_SDK_CONTEXT_MEMORY_STORE_H_
#define MUSTER_WORKER_SDK_CONTEXT_MEMORY_STORE_H_

#include <chrono>
#include <condition_variable>
#include <map>
#include <string>

#include "base/mutex.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/context/store.h"

namespace muster {

class MemoryStore : public Store {
 public:
  // As the agent's table.
  static constexpr size_t kMaxValue = 1u << 20;

  Status Set(const std::string& key, const std::string& value) override;
  Result<std::string> Get(const std::string& key, std::chrono::milliseconds wait) override;

 private:
  base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, std::string> values_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_MEMORY_STORE_H_
