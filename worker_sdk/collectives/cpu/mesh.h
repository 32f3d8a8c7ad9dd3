// Connects a rank to all others: it listens, publishes where, connects to the lower ranks and
// accepts the higher ones, all at once and without blocking, so that a silent or hostile client
// holds nobody up. Every connection opens with the handshake of handshake.h.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_MESH_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_MESH_H_

#include <string>
#include <vector>

#include "worker_sdk/collectives/cpu/options.h"
#include "worker_sdk/collectives/cpu/socket.h"
#include "worker_sdk/context/abort_signal.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/context/store.h"

namespace muster::cpu {

// The key under which a rank of that group publishes its endpoint.
std::string EndpointKey(const CpuGroupOptions& options, int rank);

// One proven connection per rank, by rank; none at our own. Errors: as CreateCpuGroup().
Result<std::vector<Socket>> ConnectMesh(Store& store, AbortSignal& abort,
                                        const CpuGroupOptions& options);

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_MESH_H_
