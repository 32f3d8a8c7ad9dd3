#include "worker_sdk/context/memory_store.h"

namespace muster {

Status MemoryStore::Set(const std::string& key, const std::string& value) {
  if (value.size() > kMaxValue) {
    return {StatusCode::kInvalidArgument, "the value of key '" + key + "' has " +
                                              std::to_string(value.size()) + " bytes; at most " +
                                              std::to_string(kMaxValue) + " are kept"};
  }
  base::MutexLock lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
  return {};
}

Result<std::string> MemoryStore::Get(const std::string& key, std::chrono::milliseconds wait) {
  auto deadline = std::chrono::steady_clock::now() + wait;
  base::MutexLock lock(mutex_);
  for (;;) {
    auto it = values_.find(key);
    if (it != values_.end()) return it->second;
    if (std::chrono::steady_clock::now() >= deadline) {
      return Status(StatusCode::kDeadlineExceeded,
                    "nobody set key '" + key + "' within " + std::to_string(wait.count()) + " ms");
    }
    changed_.wait_until(mutex_, deadline);
  }
}

}  // namespace muster
