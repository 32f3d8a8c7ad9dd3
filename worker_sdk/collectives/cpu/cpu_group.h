// A ProcessGroup over TCP between all ranks, for buffers in host memory. Needs a Store to find the
// other ranks and an AbortSignal that ends every wait; both outlive the group. Users start with
// CreateProcessGroup() (worker_sdk/collectives/create.h).
//
// Order of reduction: for each element x0 + x1 + ... in rank order (`Algorithm::kDirect`), whatever
// the sizes and the timing; `kRing` adds in an order that depends on the element's place, equal
// over ranks and runs. A NaN on any rank makes a NaN, in every operation (with x86's or the
// compiler's choice of payload, the same on all ranks). Minimum and maximum: of -0.0 and 0.0 the
// one that comes first in the order counts.
//
// Destroying the group finishes what was started (for at most `leave_patience`) and then leaves, so
// that a rank may go as soon as its own part is done. A rank that is gone ends the operations of
// the others with PeerLost{rank}: at once if the abort signal says so, else `culprit_grace` after
// its connection broke.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_CPU_GROUP_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_CPU_GROUP_H_

#include <memory>

#include "worker_sdk/collectives/cpu/options.h"
#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/abort_signal.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/context/store.h"

namespace muster {

// Connects to all other ranks. A world of one needs no sockets. Errors: kInvalidArgument,
// kDeadlineExceeded (names the ranks that never came), kUnavailable (no socket), kAborted.
Result<std::unique_ptr<ProcessGroup>> CreateCpuGroup(Store& store, AbortSignal& abort,
                                                     const CpuGroupOptions& options);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_CPU_GROUP_H_
