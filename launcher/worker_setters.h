// What the values of those flags mean that are about workers and their program. A table; pure.
#ifndef MUSTER_LAUNCHER_WORKER_SETTERS_H_
#define MUSTER_LAUNCHER_WORKER_SETTERS_H_

#include <span>

#include "launcher/run_setters.h"

namespace muster::launcher {

std::span<const NamedSetter> WorkerSetters();

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_WORKER_SETTERS_H_
