// The last words on the links of a group: why it failed, or that it leaves in order. Called by the
// progress loop's thread, which does nothing else any more.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_FAREWELL_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_FAREWELL_H_

#include <chrono>
#include <vector>

#include "worker_sdk/collectives/cpu/link.h"
#include "worker_sdk/context/abort_signal.h"
#include "worker_sdk/context/status.h"

namespace muster::cpu {

// Finishes each link's frame and sends the cause after it, as far as that goes until then.
void SpreadFailure(const std::vector<Link*>& links, const Status& cause,
                   std::chrono::steady_clock::time_point until);

// Says goodbye and waits until the peers' machines have acknowledged everything, reading on
// meanwhile: closing a socket with unread bytes would throw away what is under way. Ends early when
// `abort` is raised.
void SayGoodbye(const std::vector<Link*>& links, const AbortSignal& abort,
                std::chrono::steady_clock::time_point until);

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_FAREWELL_H_
