// `muster logs`: shows the log files of a run together, once or as they grow.
#ifndef MUSTER_LAUNCHER_LOGS_COMMAND_H_
#define MUSTER_LAUNCHER_LOGS_COMMAND_H_

#include <span>
#include <string>

namespace muster::launcher {

// `words` follow "logs". Returns the exit code: 0, 1 if stdout can't be written, 64 for a slip or
// if there are no such files. With --follow it ends when the job has ended as far as its agents'
// files lie there, by a signal, or when nobody reads its output any more.
int LogsCommand(std::span<const std::string> words);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_LOGS_COMMAND_H_
