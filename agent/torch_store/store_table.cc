#include "agent/torch_store/store_table.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <variant>

#include "agent/torch_store/store_protocol.h"

namespace muster::agent::torch_store {
namespace {

// What an entry costs beside its bytes, roughly.
constexpr size_t kEntryBytes = 64;

std::string OneByte(char byte) { return std::string(1, byte); }

size_t CostOf(const std::string& key) { return key.size() + kEntryBytes; }

}  // namespace

std::string StoreTable::Take(ConnectionId connection, Request request,
                             std::vector<Answer>& answers) {
  asking_ = connection;
  answers_ = &answers;
  StopWaiting(connection);
  const auto* pop = std::get_if<QueuePop>(&request);
  Uncall(connection, pop != nullptr ? pop->queue : "");
  return std::visit([this](auto& r) { return Do(r); }, request);
}

void StoreTable::Closed(ConnectionId connection, std::vector<Answer>& answers) {
  answers_ = &answers;
  StopWaiting(connection);
  Uncall(connection, "");
}

void StoreTable::Clear() {
  values_.clear();
  queues_.clear();
  waiters_.clear();
  waited_for_.clear();
  called_.clear();
  total_bytes_ = 0;
}

// ---- keys ----------------------------------------------------------------------------------

std::string StoreTable::Do(Set& request) { return Put(request.key, std::move(request.value)); }

std::string StoreTable::Do(MultiSet& request) {
  for (auto& [key, value] : request.pairs) {
    if (std::string refusal = Put(key, std::move(value)); !refusal.empty()) return refusal;
  }
  return "";
}

std::string StoreTable::Do(const CompareSet& request) {
  auto found = values_.find(request.key);
  const bool is_there = found != values_.end();
  const bool is_swapped = is_there ? found->second == request.expected : request.expected.empty();
  std::string refusal;
  if (is_swapped) refusal = Put(request.key, request.desired);
  if (!refusal.empty()) return refusal;
  // Of a key that isn't there, PyTorch's own server tells what the client expected.
  const std::string& now = is_swapped ? request.desired
                           : is_there ? found->second
                                      : request.expected;
  std::string bytes;
  PutText(now, bytes);
  Reply(asking_, std::move(bytes));
  return "";
}

std::string StoreTable::Do(const Get& request) {
  auto found = values_.find(request.key);
  std::string bytes;
  // Clients wait first; a key that was deleted meanwhile is empty.
  PutText(found == values_.end() ? "" : found->second, bytes);
  Reply(asking_, std::move(bytes));
  return "";
}

std::string StoreTable::Do(const MultiGet& request) {
  size_t total = 0;
  for (const std::string& key : request.keys) {
    auto found = values_.find(key);
    total += sizeof(uint64_t) + (found == values_.end() ? 0 : found->second.size());
  }
  if (total > limits_.max_answer_bytes) {
    return "a request whose answer has " + std::to_string(total) + " bytes (" +
           std::to_string(limits_.max_answer_bytes) + " at most)";
  }
  std::string bytes;
  bytes.reserve(total);
  for (const std::string& key : request.keys) {
    auto found = values_.find(key);
    PutText(found == values_.end() ? "" : found->second, bytes);
  }
  Reply(asking_, std::move(bytes));
  return "";
}

std::string StoreTable::Do(const Append& request) {
  auto found = values_.find(request.key);
  if (found == values_.end()) return Put(request.key, request.value);
  if (std::string refusal = Reserve(request.value.size()); !refusal.empty()) return refusal;
  if (found->second.size() + request.value.size() > kMaxValueBytes) {
    total_bytes_ -= request.value.size();
    return "a value that grows beyond " + std::to_string(kMaxValueBytes) + " bytes";
  }
  found->second.append(request.value);
  Wake(request.key);
  return "";
}

std::string StoreTable::Do(const Add& request) {
  int64_t sum = 0;
  std::string refusal = Increase(request.key, request.delta, sum);
  if (!refusal.empty()) return refusal;
  std::string bytes;
  PutNumber(sum, bytes);
  Reply(asking_, std::move(bytes));
  Wake(request.key);
  return "";
}

std::string StoreTable::Do(const Delete& request) {
  auto found = values_.find(request.key);
  const bool is_there = found != values_.end();
  if (is_there) {
    total_bytes_ -= CostOf(found->first) + found->second.size();
    values_.erase(found);
  }
  std::string bytes;
  PutNumber(is_there ? 1 : 0, bytes);
  Reply(asking_, std::move(bytes));
  return "";
}

std::string StoreTable::Do(const CountKeys&) {
  std::string bytes;
  PutNumber(static_cast<int64_t>(values_.size()), bytes);
  Reply(asking_, std::move(bytes));
  return "";
}

std::string StoreTable::Do(const ListKeys&) {
  std::string bytes;
  PutNumber(static_cast<int64_t>(values_.size()), bytes);
  for (const auto& [key, value] : values_) PutText(key, bytes);
  if (bytes.size() > limits_.max_answer_bytes) {
    return "a list of keys of " + std::to_string(bytes.size()) + " bytes (" +
           std::to_string(limits_.max_answer_bytes) + " at most)";
  }
  Reply(asking_, std::move(bytes));
  return "";
}

std::string StoreTable::Do(const Ping& request) {
  std::string bytes;
  PutNonce(request.nonce, bytes);
  Reply(asking_, std::move(bytes));
  return "";
}

// ---- waiting -------------------------------------------------------------------------------

std::string StoreTable::Do(const Check& request) {
  const bool is_ready = std::ranges::all_of(request.keys, [this](const auto& k) { return Has(k); });
  Reply(asking_, OneByte(is_ready ? kReady : kNotReady));
  return "";
}

std::string StoreTable::Do(const Wait& request) {
  std::vector<std::string> missing;
  size_t bytes = 0;
  for (const std::string& key : request.keys) {
    if (Has(key)) continue;
    missing.push_back(key);
    bytes += CostOf(key);
  }
  if (missing.empty()) {
    Reply(asking_, OneByte(kStopWaiting));
    return "";
  }
  if (std::string refusal = Reserve(bytes); !refusal.empty()) return refusal;
  total_bytes_ -= bytes;
  StartWaiting(missing);
  return "";
}

std::string StoreTable::Do(const CancelWait&) {
  Reply(asking_, OneByte(kWaitCancelled));
  return "";
}

std::string StoreTable::Do(const Barrier& request) {
  int64_t arrived = 0;
  std::string refusal = Increase(request.key, 1, arrived);
  if (!refusal.empty()) return refusal;
  if (arrived < request.count) {
    StartWaiting({request.key});
    return "";
  }
  Reply(asking_, OneByte(kStopWaiting));
  Wake(request.key);
  return "";
}

void StoreTable::StartWaiting(const std::vector<std::string>& missing) {
  Waiter& waiter = waiters_[asking_];
  waiter.sequence = ++last_sequence_;
  for (const std::string& key : missing) {
    if (!waiter.missing.insert(key).second) continue;
    total_bytes_ += CostOf(key);
    waited_for_[key].emplace(waiter.sequence, asking_);
  }
}

void StoreTable::StopWaiting(ConnectionId connection) {
  auto found = waiters_.find(connection);
  if (found == waiters_.end()) return;
  for (const std::string& key : found->second.missing) {
    total_bytes_ -= CostOf(key);
    auto others = waited_for_.find(key);
    others->second.erase(found->second.sequence);
    if (others->second.empty()) waited_for_.erase(others);
  }
  waiters_.erase(found);
}

void StoreTable::Wake(const std::string& key) {
  auto found = waited_for_.find(key);
  if (found == waited_for_.end()) return;
  for (const auto& [sequence, connection] : found->second) {
    auto waiter = waiters_.find(connection);
    waiter->second.missing.erase(key);
    total_bytes_ -= CostOf(key);
    if (!waiter->second.missing.empty()) continue;
    Reply(connection, OneByte(kStopWaiting));
    waiters_.erase(waiter);
  }
  waited_for_.erase(found);
}

// ---- queues --------------------------------------------------------------------------------

std::string StoreTable::Do(QueuePush& request) {
  std::string refusal = Reserve(CostOf(request.value));
  if (!refusal.empty()) return refusal;
  auto [queue, is_new] = queues_.try_emplace(request.queue);
  if (is_new) total_bytes_ += CostOf(request.queue);
  queue->second.push_back(std::move(request.value));
  CallOne(request.queue);
  return "";
}

std::string StoreTable::Do(const QueuePop& request) {
  auto queue = queues_.find(request.queue);
  std::string bytes;
  if (queue == queues_.end()) {
    PutNumber(0, bytes);
    Reply(asking_, std::move(bytes));
    return "";
  }
  PutNumber(static_cast<int64_t>(queue->second.size()), bytes);
  PutText(queue->second.front(), bytes);
  total_bytes_ -= CostOf(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) {
    total_bytes_ -= CostOf(queue->first);
    queues_.erase(queue);
  }
  Reply(asking_, std::move(bytes));
  return "";
}

std::string StoreTable::Do(const QueueLength& request) {
  auto queue = queues_.find(request.queue);
  std::string bytes;
  PutNumber(queue == queues_.end() ? 0 : static_cast<int64_t>(queue->second.size()), bytes);
  Reply(asking_, std::move(bytes));
  return "";
}

void StoreTable::CallOne(const std::string& queue) {
  auto found = waited_for_.find(queue);
  if (found == waited_for_.end()) return;
  std::map<uint64_t, ConnectionId>& waiting = found->second;
  while (!waiting.empty()) {
    const ConnectionId connection = waiting.begin()->second;
    Waiter& waiter = waiters_.at(connection);
    if (waiter.missing.size() == 1) {
      StopWaiting(connection);
      called_[connection] = queue;
      Reply(connection, OneByte(kStopWaiting));
      return;
    }
    // Who waits for other keys as well has seen this one, but doesn't come to take from it now.
    waiter.missing.erase(queue);
    total_bytes_ -= CostOf(queue);
    waiting.erase(waiting.begin());
  }
  waited_for_.erase(found);
}

void StoreTable::Uncall(ConnectionId connection, const std::string& except_for) {
  auto found = called_.find(connection);
  if (found == called_.end()) return;
  const std::string queue = std::move(found->second);
  called_.erase(found);
  if (queue != except_for && queues_.contains(queue)) CallOne(queue);
}

// ---- both ----------------------------------------------------------------------------------

bool StoreTable::Has(const std::string& key) const {
  return values_.contains(key) || queues_.contains(key);
}

std::string StoreTable::Put(const std::string& key, std::string value) {
  auto [entry, is_new] = values_.try_emplace(key);
  const size_t before = is_new ? 0 : CostOf(key) + entry->second.size();
  total_bytes_ -= before;
  std::string refusal = Reserve(CostOf(key) + value.size());
  if (!refusal.empty()) {
    total_bytes_ += before;
    if (is_new) values_.erase(entry);
    return refusal;
  }
  entry->second = std::move(value);
  Wake(key);
  return "";
}

std::string StoreTable::Increase(const std::string& key, int64_t delta, int64_t& sum) {
  auto found = values_.find(key);
  uint64_t before = 0;
  if (found != values_.end()) {
    const char* text = found->second.c_str();
    char* end = nullptr;
    errno = 0;
    before = static_cast<uint64_t>(std::strtoll(text, &end, 10));
    if (end == text || errno != 0) {
      return "an addition to key \"" + key + "\", whose value is no whole number";
    }
  }
  // Past the largest number it goes on from the smallest, as there.
  sum = static_cast<int64_t>(before + static_cast<uint64_t>(delta));
  std::string value = std::to_string(sum);
  if (found != values_.end()) {
    total_bytes_ += value.size();
    total_bytes_ -= found->second.size();
    found->second = std::move(value);
    return "";
  }
  if (std::string refusal = Reserve(CostOf(key) + value.size()); !refusal.empty()) return refusal;
  values_.emplace(key, std::move(value));
  return "";
}

std::string StoreTable::Reserve(size_t bytes) {
  if (total_bytes_ + bytes > limits_.max_total_bytes) {
    return "the store is full (" + std::to_string(limits_.max_total_bytes >> 20) + " MiB)";
  }
  total_bytes_ += bytes;
  return "";
}

void StoreTable::Reply(ConnectionId connection, std::string bytes) {
  answers_->push_back({connection, std::move(bytes)});
}

}  // namespace muster::agent::torch_store
