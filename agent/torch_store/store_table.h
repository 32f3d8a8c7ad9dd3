// The keys, values and queues of one round's TCPStore, and who waits for them. Pure: a request goes
// in, answers come out; no sockets, clock or threads. What clients wait for has no end here: they
// keep their own time-outs and then cancel, ask for something else, or go.
//
//   std::vector<Answer> answers;
//   std::string refusal = table.Take(connection, std::move(request), answers);
//
// It does what PyTorch's own server does (the newest one's where they differ). Owned and used by
// StoreServer's thread.
#ifndef MUSTER_AGENT_TORCH_STORE_STORE_TABLE_H_
#define MUSTER_AGENT_TORCH_STORE_STORE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/torch_store/store_requests.h"
#include "base/ids.h"

namespace muster::agent::torch_store {

// Given by the server, never used twice.
using ConnectionId = StrongInt<struct StoreConnectionTag, uint64_t>;

struct Answer {
  ConnectionId connection;
  std::string bytes;
  friend bool operator==(const Answer&, const Answer&) = default;
};

struct TableLimits {
  // Keys, values and queued values, those that are only waited for too, with a little for each.
  size_t max_total_bytes = size_t{512} << 20;
  // The values of one MultiGet, or the keys of one ListKeys.
  size_t max_answer_bytes = size_t{256} << 20;
};

class StoreTable {
 public:
  explicit StoreTable(const TableLimits& limits) : limits_(limits) {}

  // Adds what comes of the request, for others that waited too, in the order in which it is to be
  // sent. Returns why it is refused, for people, and then the connection is to be closed; empty: it
  // isn't. A request of a connection that waits ends its wait: clients ask one thing at a time, and
  // those until PyTorch 1.13 give up without a word.
  std::string Take(ConnectionId connection, Request request, std::vector<Answer>& answers);

  // The connection is gone, with what it waited for.
  void Closed(ConnectionId connection, std::vector<Answer>& answers);

  // Keys and waits begin anew.
  void Clear();

  size_t total_bytes() const { return total_bytes_; }
  size_t waiting() const { return waiters_.size(); }

 private:
  struct Waiter {
    // Its place among those who wait for the same key.
    uint64_t sequence = 0;
    std::unordered_set<std::string> missing;
  };

  std::string Do(Set& request);
  std::string Do(const CompareSet& request);
  std::string Do(const Get& request);
  std::string Do(const Add& request);
  std::string Do(const Check& request);
  std::string Do(const Wait& request);
  std::string Do(const CancelWait& request);
  std::string Do(const CountKeys& request);
  std::string Do(const ListKeys& request);
  std::string Do(const Delete& request);
  std::string Do(const Append& request);
  std::string Do(const MultiGet& request);
  std::string Do(MultiSet& request);
  std::string Do(const Ping& request);
  std::string Do(QueuePush& request);
  std::string Do(const QueuePop& request);
  std::string Do(const QueueLength& request);
  std::string Do(const Barrier& request);

  bool Has(const std::string& key) const;
  std::string Put(const std::string& key, std::string value);
  // Adds to the number at `key`; `sum` is the new one.
  std::string Increase(const std::string& key, int64_t delta, int64_t& sum);
  // Room for so much more; why not, otherwise.
  std::string Reserve(size_t bytes);
  void StartWaiting(const std::vector<std::string>& missing);
  void StopWaiting(ConnectionId connection);
  // All who wait for the key have it.
  void Wake(const std::string& key);
  // The first who waits for nothing but this queue may take from it.
  void CallOne(const std::string& queue);
  // Whoever was called and doesn't come leaves it to the next.
  void Uncall(ConnectionId connection, const std::string& except_for);
  void Reply(ConnectionId connection, std::string bytes);

  const TableLimits limits_;
  std::unordered_map<std::string, std::string> values_;
  // None is empty.
  std::unordered_map<std::string, std::deque<std::string>> queues_;
  std::unordered_map<ConnectionId, Waiter> waiters_;
  // By key, the first who came first.
  std::unordered_map<std::string, std::map<uint64_t, ConnectionId>> waited_for_;
  // Told that this queue has something, and haven't asked for anything since.
  std::unordered_map<ConnectionId, std::string> called_;
  uint64_t last_sequence_ = 0;
  size_t total_bytes_ = 0;
  // Of the request under way.
  ConnectionId asking_;
  std::vector<Answer>* answers_ = nullptr;
};

}  // namespace muster::agent::torch_store

#endif  // MUSTER_AGENT_TORCH_STORE_STORE_TABLE_H_
