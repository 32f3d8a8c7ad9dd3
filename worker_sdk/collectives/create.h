// The way to a ProcessGroup for users: all ranks of the context's world.
//
//   auto group = muster::CreateProcessGroup(*context);
//   if (!group.ok()) ...
//   (*group)->AllReduce(muster::MutableView(values), muster::ReduceOp::kSum).Wait();
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CREATE_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CREATE_H_

#include <memory>
#include <string>

#include "worker_sdk/collectives/cpu/cpu_group.h"
#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/context.h"
#include "worker_sdk/context/status.h"

namespace muster {

struct GroupOptions {
  // Tells groups of one context apart; each name is used once.
  std::string name = "default";
  Algorithm algorithm = Algorithm::kDirect;
};

// Connects to all other ranks; `context` outlives the group. Errors: as CreateCpuGroup().
Result<std::unique_ptr<ProcessGroup>> CreateProcessGroup(Context& context,
                                                         const GroupOptions& options = {});

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CREATE_H_
