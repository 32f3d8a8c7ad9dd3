// Lines of the launcher's own, before and after the agent runs: "muster: <sentence>" on stderr, in
// one write. Thread-safe.
#ifndef MUSTER_LAUNCHER_SAY_H_
#define MUSTER_LAUNCHER_SAY_H_

#include <string_view>

namespace muster::launcher {

void Say(std::string_view sentence);

// To stdout, as it is: help, version, tables. False if it can't be written.
bool Print(std::string_view text);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SAY_H_
