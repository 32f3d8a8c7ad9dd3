// What the values of those flags mean that are about output and logs. A table; pure.
#ifndef MUSTER_LAUNCHER_OUTPUT_SETTERS_H_
#define MUSTER_LAUNCHER_OUTPUT_SETTERS_H_

#include <span>

#include "launcher/run_setters.h"

namespace muster::launcher {

std::span<const NamedSetter> OutputSetters();

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_OUTPUT_SETTERS_H_
