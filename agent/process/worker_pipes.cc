#include "agent/process/worker_pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace muster::agent {

WorkerPipes MakeWorkerPipes(LocalRank local_rank, int* stdout_read, int* stderr_read) {
  WorkerPipes pipes{.local_rank = local_rank};
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0) {
    pipes.error = errno;
    return pipes;
  }
  if (pipe2(err, O_CLOEXEC) != 0) {
    pipes.error = errno;
    close(out[0]);
    close(out[1]);
    return pipes;
  }
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  *stdout_read = out[0];
  *stderr_read = err[0];
  pipes.stdout_fd = out[1];
  pipes.stderr_fd = err[1];
  return pipes;
}

}  // namespace muster::agent
