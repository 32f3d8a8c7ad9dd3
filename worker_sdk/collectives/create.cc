#include "worker_sdk/collectives/create.h"

namespace muster {

Result<std::unique_ptr<ProcessGroup>> CreateProcessGroup(Context& context,
                                                         const GroupOptions& options) {
  CpuGroupOptions cpu;
  cpu.rank = context.rank();
  cpu.world_size = context.world_size();
  cpu.world = context.world();
  cpu.key = context.key();
  cpu.address = context.address();
  cpu.name = options.name;
  cpu.algorithm = options.algorithm;
  cpu.waits = &context.peer_waits();
  return CreateCpuGroup(context.store(), context.abort_signal(), cpu);
}

}  // namespace muster
