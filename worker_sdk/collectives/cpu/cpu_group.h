// A ProcessGroup over TCP between all ranks, for buffers in host memory. Needs a Store to find the
// other ranks and an AbortSignal that ends every wait; both outlive the group. Users start with
// CreateProcessGroup() (worker_sdk/collectives/create.h).
//
// Order of reduction: for each element x0 + x1 + ... in rank order (`Algorithm::kDirect`), whatever
// the sizes and the timing; `kRing` adds in an order that depends on the element's place, equal
// over ranks and runs. Minimum and maximum: a NaN on any rank makes a NaN (with x86's or the
// compiler's choice of payload, the same on all ranks); of -0.0 and 0.0 the one of the lowest rank
// counts.
//
// Destroying the group finishes what was started (for at most `leave_patience`) and then leaves, so
// that a rank may go as soon as its own part is done. A rank that is gone ends the operations of
// the others with PeerLost{rank}: at once if the abort signal says so, else `culprit_grace` after
// its connection broke.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_CPU_GROUP_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_CPU_GROUP_H_

#include <chrono>
#include <memory>
#include <string>

#include "base/ids.h"
#include "base/job_types.h"
#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/abort_signal.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/context/store.h"

namespace muster {

// How AllReduce moves the data. All ranks must choose the same.
enum class Algorithm : uint8_t {
  kDirect = 0,  // reduce-scatter and all-gather between all pairs; serial order of addition
  kRing = 1,    // the same bytes, always to the next neighbour
};

struct CpuGroupOptions {
  int rank = 0;
  int world_size = 1;
  // The round's identity and secret: a peer that can't prove them is dropped.
  World world;
  RoundKey key;
  // Where other ranks reach this one: an IP address of either version, or a name.
  std::string address = "127.0.0.1";
  // Tells groups of one world apart.
  std::string name = "default";
  Algorithm algorithm = Algorithm::kDirect;
  // How long the other ranks may take to appear.
  std::chrono::milliseconds connect_patience = std::chrono::minutes(5);
  // How long a stranger may take to prove itself.
  std::chrono::milliseconds handshake_patience = std::chrono::seconds(5);
  // How long to wait, after a connection broke, for someone who knows the real culprit.
  std::chrono::milliseconds culprit_grace = std::chrono::milliseconds(200);
  // How long the destructor may take to finish what was started.
  std::chrono::milliseconds leave_patience = std::chrono::seconds(10);
};

// Connects to all other ranks. A world of one needs no sockets. Errors: kInvalidArgument,
// kDeadlineExceeded (names the ranks that never came), kUnavailable (no socket), kAborted.
Result<std::unique_ptr<ProcessGroup>> CreateCpuGroup(Store& store, AbortSignal& abort,
                                                     const CpuGroupOptions& options);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_CPU_GROUP_H_
