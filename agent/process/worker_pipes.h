// The two pipes through which one worker's output comes. Values and one function; thread-safe.
#ifndef MUSTER_AGENT_PROCESS_WORKER_PIPES_H_
#define MUSTER_AGENT_PROCESS_WORKER_PIPES_H_

#include "base/ids.h"

namespace muster::agent {

// Write ends for WorkerCommand, which owns them from then on.
struct WorkerPipes {
  LocalRank local_rank;
  int stdout_fd = -1;
  int stderr_fd = -1;
  // errno where they could not be made (EMFILE): both are -1, and the worker must not be started,
  // since what it writes would go past prefixes, files and the summary.
  int error = 0;
};

// Pipes for one worker, and their read ends, which don't block; all of them or none.
WorkerPipes MakeWorkerPipes(LocalRank local_rank, int* stdout_read, int* stderr_read);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_WORKER_PIPES_H_
