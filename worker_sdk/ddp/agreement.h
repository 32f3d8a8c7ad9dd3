// Do all ranks give the same parameters? A collective check whose answer is the same on every rank,
// rank 0 included, so that none goes on alone. Stateless.
#ifndef MUSTER_WORKER_SDK_DDP_AGREEMENT_H_
#define MUSTER_WORKER_SDK_DDP_AGREEMENT_H_

#include <string>
#include <vector>

#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/status.h"

namespace muster {

// `lines` describes this rank's parameters, one each; `own` is what this rank has against going on
// (no memory, say). OK if all ranks have the same lines and nothing against it. Otherwise the same
// error on all: the objection of the lowest rank that has one, with its code, or
// kFailedPrecondition naming the lowest rank that differs from rank 0 and the first difference.
Status CheckAgreement(ProcessGroup& group, const std::vector<std::string>& lines,
                      const Status& own);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DDP_AGREEMENT_H_
