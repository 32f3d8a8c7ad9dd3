// Whether this process may open as many files as its workers' pipes need. Found out before anything
// is started, since a shortage later shows in odd places: a library that aborts, a connection that
// never comes about.
#ifndef MUSTER_LAUNCHER_DESCRIPTOR_NEED_H_
#define MUSTER_LAUNCHER_DESCRIPTOR_NEED_H_

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/launch_plan.h"
#include "launcher/run_options.h"

namespace muster::launcher {

// Of this process, now.
struct DescriptorFacts {
  // RLIMIT_NOFILE's soft limit, raised as far as it goes.
  uint64_t limit = 0;
  // Those that are open, inherited ones too.
  int open_count = 0;
};
DescriptorFacts LookUpDescriptors();

// One sentence with both numbers if the limit is too low for this many workers. Pure.
std::optional<std::string> TooFewDescriptors(const RunOptions& options, const LaunchPlan& plan,
                                             const DescriptorFacts& facts);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_DESCRIPTOR_NEED_H_
