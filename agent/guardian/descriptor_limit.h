// The limit of open descriptors: muster's own processes need one or two for each worker, so they
// raise the soft limit to the hard one; workers get back the limits that muster was started with.
// Not thread-safe: raised once, before any thread exists.
#ifndef MUSTER_AGENT_GUARDIAN_DESCRIPTOR_LIMIT_H_
#define MUSTER_AGENT_GUARDIAN_DESCRIPTOR_LIMIT_H_

namespace muster::agent::guardian {

// Raises the soft limit of this process and of those it forks.
void RaiseDescriptorLimit();

// The soft limit that was there before; nothing if it wasn't raised. One system call, so that it
// may be used between fork and exec.
void RestoreDescriptorLimit();

}  // namespace muster::agent::guardian

#endif  // MUSTER_AGENT_GUARDIAN_DESCRIPTOR_LIMIT_H_
