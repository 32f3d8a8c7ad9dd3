#include "launcher/descriptor_need.h"

#include <dirent.h>
#include <sys/resource.h>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

// For gRPC, the guardian, the console and the rendezvous.
constexpr int kForItself = 40;
// Two pipes, both ends of which are open until the worker has started.
constexpr int kForEachWorker = 4;

int FilesOf(const StreamSelection& redirects, const StreamSelection& tee, int local_rank) {
  int chosen = redirects.Of(local_rank) | tee.Of(local_rank);
  return (chosen & 1) + (chosen >> 1);
}

}  // namespace

DescriptorFacts LookUpDescriptors() {
  DescriptorFacts facts;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.limit = limit.rlim_cur;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return facts;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') ++facts.open_count;
  }
  closedir(folder);
  --facts.open_count;  // the folder itself
  return facts;
}

std::optional<std::string> TooFewDescriptors(const RunOptions& options, const LaunchPlan& plan,
                                             const DescriptorFacts& facts) {
  int need = facts.open_count + kForItself;
  for (int i = 0; i < plan.worker_count; ++i) {
    need += kForEachWorker + FilesOf(options.redirects, options.tee, i);
  }
  if (static_cast<uint64_t>(need) <= facts.limit) return std::nullopt;
  return Cat("the limit of open files (", facts.limit, ") is too low for ", plan.worker_count,
             plan.worker_count == 1 ? " worker" : " workers", ", which need about ", need,
             "; raise the hard limit (`ulimit -Hn`, or the container's), or start fewer workers");
}

}  // namespace muster::launcher
