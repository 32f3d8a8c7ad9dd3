// What the values of those flags mean that are about nodes and the place where they meet. A table;
// pure.
#ifndef MUSTER_LAUNCHER_MEETING_SETTERS_H_
#define MUSTER_LAUNCHER_MEETING_SETTERS_H_

#include <span>

#include "launcher/run_setters.h"

namespace muster::launcher {

std::span<const NamedSetter> MeetingSetters();

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_MEETING_SETTERS_H_
