// What the values of those flags mean that are about what becomes of faults and signals. A table;
// pure.
#ifndef MUSTER_LAUNCHER_FAULT_SETTERS_H_
#define MUSTER_LAUNCHER_FAULT_SETTERS_H_

#include <span>

#include "launcher/run_setters.h"

namespace muster::launcher {

std::span<const NamedSetter> FaultSetters();

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_FAULT_SETTERS_H_
