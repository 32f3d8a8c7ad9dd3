// What a person reads when a job failed: torchrun's summary, which tools search for, with the log
// path and the last lines of stderr where there are some. Pure functions.
#ifndef MUSTER_AGENT_CORE_FAILURE_REPORT_H_
#define MUSTER_AGENT_CORE_FAILURE_REPORT_H_

#include <string>

#include "base/job_types.h"

namespace muster::agent {

// Several lines without a newline at the end; empty if no worker is the cause of `verdict` (its
// reason says it all then). `program` is the name that failed.
std::string FailureReport(const std::string& program, const Verdict& verdict);

// One line about one worker's end: "rank 1 (local rank 1, pid 12, node a) was ended by signal 9
// (SIGKILL)".
std::string FailureLine(const WorkerFailure& failure);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_FAILURE_REPORT_H_
