// The worker SDK, as a training program sees it:
//
//   Context             who am I; the channel to the agent (worker_sdk/context/context.h)
//   ProcessGroup        collective operations (worker_sdk/collectives/process_group.h)
//   Reducer             gradients averaged while the backward pass runs (worker_sdk/ddp/reducer.h)
//   DistributedSampler  who trains on which samples (worker_sdk/data/distributed_sampler.h)
//   RandomStream        numbers that are the same everywhere (worker_sdk/data/random_stream.h)
//   CheckpointStore     saves and finds checkpoints (worker_sdk/checkpoint/checkpoint_store.h)
//   Fingerprint         a hash, to compare parameters (worker_sdk/checkpoint/fingerprint.h)
//
// See worker_sdk/README.md for a program of twenty lines.
#ifndef MUSTER_WORKER_SDK_MUSTER_H_
#define MUSTER_WORKER_SDK_MUSTER_H_

#include "worker_sdk/checkpoint/checkpoint_store.h"  // IWYU pragma: export
#include "worker_sdk/checkpoint/fingerprint.h"       // IWYU pragma: export
#include "worker_sdk/collectives/create.h"           // IWYU pragma: export
#include "worker_sdk/collectives/process_group.h"    // IWYU pragma: export
#include "worker_sdk/context/context.h"              // IWYU pragma: export
#include "worker_sdk/data/distributed_sampler.h"     // IWYU pragma: export
#include "worker_sdk/data/random_stream.h"           // IWYU pragma: export
#include "worker_sdk/ddp/reducer.h"                  // IWYU pragma: export

#endif  // MUSTER_WORKER_SDK_MUSTER_H_
