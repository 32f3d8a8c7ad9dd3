// What a client of PyTorch's TCPStore can ask for. Values; no behaviour. How they look on the wire
// is store_protocol.h's affair, what comes of them store_table.h's.
#ifndef MUSTER_AGENT_TORCH_STORE_STORE_REQUESTS_H_
#define MUSTER_AGENT_TORCH_STORE_STORE_REQUESTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster::agent::torch_store {

struct Set {
  std::string key;
  std::string value;
  friend bool operator==(const Set&, const Set&) = default;
};

// Sets `desired` if the value is `expected`, or if there is no value and `expected` is empty.
struct CompareSet {
  std::string key;
  std::string expected;
  std::string desired;
  friend bool operator==(const CompareSet&, const CompareSet&) = default;
};

struct Get {
  std::string key;
  friend bool operator==(const Get&, const Get&) = default;
};

// Adds to a value that is a decimal number; none counts as 0.
struct Add {
  std::string key;
  int64_t delta = 0;
  friend bool operator==(const Add&, const Add&) = default;
};

// Whether all keys are there.
struct Check {
  std::vector<std::string> keys;
  friend bool operator==(const Check&, const Check&) = default;
};

// Answered when all keys are there.
struct Wait {
  std::vector<std::string> keys;
  friend bool operator==(const Wait&, const Wait&) = default;
};

// Gives up the connection's Wait or Barrier.
struct CancelWait {
  friend bool operator==(const CancelWait&, const CancelWait&) = default;
};

struct CountKeys {
  friend bool operator==(const CountKeys&, const CountKeys&) = default;
};

struct ListKeys {
  friend bool operator==(const ListKeys&, const ListKeys&) = default;
};

struct Delete {
  std::string key;
  friend bool operator==(const Delete&, const Delete&) = default;
};

struct Append {
  std::string key;
  std::string value;
  friend bool operator==(const Append&, const Append&) = default;
};

struct MultiGet {
  std::vector<std::string> keys;
  friend bool operator==(const MultiGet&, const MultiGet&) = default;
};

struct MultiSet {
  std::vector<std::pair<std::string, std::string>> pairs;
  friend bool operator==(const MultiSet&, const MultiSet&) = default;
};

struct Ping {
  uint32_t nonce = 0;
  friend bool operator==(const Ping&, const Ping&) = default;
};

// Queues have names of their own beside the keys; Check and Wait look at both.
struct QueuePush {
  std::string queue;
  std::string value;
  friend bool operator==(const QueuePush&, const QueuePush&) = default;
};

struct QueuePop {
  std::string queue;
  friend bool operator==(const QueuePop&, const QueuePop&) = default;
};

struct QueueLength {
  std::string queue;
  friend bool operator==(const QueueLength&, const QueueLength&) = default;
};

// Answered when so many have arrived at the key.
struct Barrier {
  std::string key;
  int64_t count = 0;
  friend bool operator==(const Barrier&, const Barrier&) = default;
};

using Request =
    std::variant<Set, CompareSet, Get, Add, Check, Wait, CancelWait, CountKeys, ListKeys, Delete,
                 Append, MultiGet, MultiSet, Ping, QueuePush, QueuePop, QueueLength, Barrier>;

}  // namespace muster::agent::torch_store

#endif  // MUSTER_AGENT_TORCH_STORE_STORE_REQUESTS_H_
