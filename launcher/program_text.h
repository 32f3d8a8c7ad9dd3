// The program and its arguments as one line, so that nodes of one job can be compared and a person
// can read where they differ. Pure; thread-safe.
#ifndef MUSTER_LAUNCHER_PROGRAM_TEXT_H_
#define MUSTER_LAUNCHER_PROGRAM_TEXT_H_

#include <string>

#include "launcher/run_options.h"

namespace muster::launcher {

// As a shell would take it: "-m pkg.train --name 'a b'". Python's own path isn't part of it, since
// nodes may have it in different places. A text beyond 4,000 bytes is cut, and a hash of the whole
// stands for the rest.
std::string ProgramText(const RunOptions& options);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_PROGRAM_TEXT_H_
