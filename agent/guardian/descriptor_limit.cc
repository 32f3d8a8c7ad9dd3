#include "agent/guardian/descriptor_limit.h"

#include <sys/resource.h>

namespace muster::agent::guardian {
namespace {

bool is_raised = false;
rlimit before{};

}  // namespace

void RaiseDescriptorLimit() {
  if (is_raised || getrlimit(RLIMIT_NOFILE, &before) != 0) return;
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  is_raised = setrlimit(RLIMIT_NOFILE, &raised) == 0;
}

void RestoreDescriptorLimit() {
  if (is_raised) setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace muster::agent::guardian
