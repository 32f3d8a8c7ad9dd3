// Tells the other nodes of a job that this one ends before it could join them, so that they know
// for whom they wait. Blocks for some seconds at most; says nothing itself but that it still tries.
// Used by one thread.
#ifndef MUSTER_LAUNCHER_FAILED_START_H_
#define MUSTER_LAUNCHER_FAILED_START_H_

#include <functional>
#include <string>

#include "base/instant.h"
#include "launcher/launch_plan.h"

namespace muster::launcher {

struct FailedStart {
  std::string node_name;
  // One sentence, as it was shown on this node.
  std::string reason;
  // How long to try where the rendezvous can't be reached, or doesn't know the job yet: the other
  // nodes may come a moment later.
  Duration patience = std::chrono::seconds(10);
  // Shows one line to the user.
  std::function<void(const std::string&)> say;
};

// True if the rendezvous has taken it. Doesn't try where there are no others, and only once where
// nobody but this node could have hosted the rendezvous.
bool TellOthers(const LaunchPlan& plan, const FailedStart& failed);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_FAILED_START_H_
