// The worker SDK, as a training program sees it:
//
//   Context             who am I; the channel to the agent (worker_sdk/context/context.h)
//   ProcessGroup        collective operations (worker_sdk/collectives/process_group.h)
//   Reducer             gradients averaged while the backward pass runs (worker_sdk/ddp/reducer.h)
//
// See worker_sdk/README.md for a program of twenty lines.
#ifndef MUSTER_WORKER_SDK_MUSTER_H_
#define MUSTER_WORKER_SDK_MUSTER_H_

#include "worker_sdk/collectives/create.h"         // IWYU pragma: export
#include "worker_sdk/collectives/process_group.h"  // IWYU pragma: export
#include "worker_sdk/context/context.h"            // IWYU pragma: export
#include "worker_sdk/ddp/reducer.h"                // IWYU pragma: export

#endif  // MUSTER_WORKER_SDK_MUSTER_H_
