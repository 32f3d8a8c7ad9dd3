// The messages between an agent and the workers on its node, and their bytes: the one table that
// both sides use. A message is a frame on a Unix stream socket:
//
//   u32 length of what follows | u8 version (1) | u8 type | fields of the type, in order
//
// Integers are little-endian; a string or byte array is u32 length + bytes; a bool is one byte.
// A frame of over kMaxFrame bytes, of an unknown type or version, or whose fields don't fill it
// exactly is malformed: the reader closes the connection. Pure functions; thread-safe.
#ifndef MUSTER_BASE_WORKER_CHANNEL_H_
#define MUSTER_BASE_WORKER_CHANNEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/ids.h"
#include "base/job_types.h"

namespace muster::worker_channel {

// Grows with every change of a message: an SDK of another age is refused by name, not misread.
inline constexpr uint8_t kVersion = 2;
// The largest value of the key-value table (1 MiB) and its key fit.
inline constexpr size_t kMaxFrame = 2u << 20;

// ---- worker -> agent -----------------------------------------------------------------------

// First message: proves by MUSTER_WORKER_ID that this is a worker the agent started.
struct Hello {
  std::string worker_id;
  int64_t pid = 0;
  std::string sdk_version;
  friend bool operator==(const Hello&, const Hello&) = default;
};

// Requests carry a number of the worker's choice; the answer repeats it.
struct SetKey {
  uint64_t request = 0;
  std::string key;
  std::string value;
  friend bool operator==(const SetKey&, const SetKey&) = default;
};

struct GetKey {
  uint64_t request = 0;
  std::string key;
  // How long to wait for the key to be set, in milliseconds; 0: what is there now.
  int64_t wait_ms = 0;
  friend bool operator==(const GetKey&, const GetKey&) = default;
};

// This rank's shard of a checkpoint is durable; asks for the grant to publish when rank 0 asks.
struct ShardDone {
  uint64_t request = 0;
  int32_t shard_count = 1;
  Commit commit;
  friend bool operator==(const ShardDone&, const ShardDone&) = default;
};

// The checkpoint is published (renamed and fsynced).
struct CommitPublished {
  uint64_t request = 0;
  Commit commit;
  friend bool operator==(const CommitPublished&, const CommitPublished&) = default;
};

// This rank has completed a step: it makes progress. No answer.
struct StepDone {
  int64_t step = 0;
  // The program asks at each step whether to save after it, so it can be told to.
  bool can_save = false;
  friend bool operator==(const StepDone&, const StepDone&) = default;
};

// From rank 0, to whom CheckpointWanted came: it saves after this step. Answered when every rank
// knows, which is before rank 0 begins that step.
struct AnnounceCheckpoint {
  uint64_t request = 0;
  int64_t step = 0;
  friend bool operator==(const AnnounceCheckpoint&, const AnnounceCheckpoint&) = default;
};

// Answers CheckpointAt: this rank will save after that step.
struct CheckpointKnown {
  int64_t step = 0;
  friend bool operator==(const CheckpointKnown&, const CheckpointKnown&) = default;
};

// Answers Ping: the process runs.
struct Pong {
  uint64_t number = 0;
  Activity activity;
  friend bool operator==(const Pong&, const Pong&) = default;
};

// ---- agent -> worker -----------------------------------------------------------------------

// Answer to Hello: the worker's place, and the round's key, which is in no environment.
struct Welcome {
  World world;
  RoundKey key;
  Rank rank;
  int32_t world_size = 0;
  LocalRank local_rank;
  int32_t local_world_size = 0;
  // Address at which other nodes reach this one; the data plane listens there.
  std::string address;
  int32_t attempt = 0;
  int32_t restarts_charged = 0;
  std::optional<Commit> resume;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// How a request ended. Numbers as muster::StatusCode (worker_sdk/context/status.h), which are
// gRPC's.
struct Answer {
  uint64_t request = 0;
  uint8_t code = 0;
  std::string message;
  // GetKey: the value.
  std::string value;
  friend bool operator==(const Answer&, const Answer&) = default;
};

// The round is over: every collective ends with PeerLost.
struct Abort {
  WorldId world_id;
  // The rank to blame, or -1.
  Rank culprit{-1};
  std::string reason;
  friend bool operator==(const Abort&, const Abort&) = default;
};

// To rank 0: a node wants to go, so announce a step to save after.
struct CheckpointWanted {
  friend bool operator==(const CheckpointWanted&, const CheckpointWanted&) = default;
};

// To every rank: save after this step.
struct CheckpointAt {
  int64_t step = 0;
  friend bool operator==(const CheckpointAt&, const CheckpointAt&) = default;
};

// The SDK's thread answers it with Pong, whatever the program does; a process that is stopped
// doesn't.
struct Ping {
  uint64_t number = 0;
  friend bool operator==(const Ping&, const Ping&) = default;
};

using Message = std::variant<Hello, SetKey, GetKey, ShardDone, CommitPublished, Welcome, Answer,
                             Abort, StepDone, AnnounceCheckpoint, Pong, CheckpointWanted,
                             CheckpointAt, Ping, CheckpointKnown>;

// The whole frame, length included.
std::string Encode(const Message& message);

// What is at the front of a receive buffer.
struct Decoded {
  enum class Kind { kNeedMore, kMessage, kMalformed };
  Kind kind = Kind::kNeedMore;
  // Bytes that the message took off the front of the buffer.
  size_t consumed = 0;
  Message message;
  // For kMalformed: what is wrong.
  std::string problem;
};

Decoded Decode(std::string_view buffer);

}  // namespace muster::worker_channel

#endif  // MUSTER_BASE_WORKER_CHANNEL_H_
