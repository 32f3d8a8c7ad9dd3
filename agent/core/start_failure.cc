#include "agent/core/start_failure.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/core/exit_code.h"

namespace muster::agent {
namespace {

// Nothing if the error isn't a shortage.
const char* RemedyOfShortage(int error) {
  switch (error) {
    case EAGAIN:
      return "raise the limit of processes (`ulimit -u`, or pids.max of the cgroup) or start fewer "
             "workers";
    case ENOMEM:
      return "free memory or start fewer workers";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (`ulimit -n`, or fs.file-max)";
    default:
      return nullptr;
  }
}

}  // namespace

StartFailure ExplainStartFailure(const std::string& program, int error, const std::string& flaw) {
  const std::string why = std::strerror(error);
  if (const char* remedy = RemedyOfShortage(error)) {
    return {kExitOsError, "no process can be made for '" + program + "': " + why + "; " + remedy};
  }
  std::string message = "'" + program + "' can't be executed: " + (flaw.empty() ? why : flaw);
  if (error == E2BIG) {
    message +=
        "; its arguments and environment together (or one of them alone) are more than this system "
        "passes on: put them into a file, or raise the limit of the stack (`ulimit -s`), of which "
        "they may take a quarter";
  }
  if (error == ENOEXEC && flaw.empty()) {
    message +=
        "; it is no binary for this machine, and no script that begins with #! and its interpreter";
  }
  return {error == ENOENT ? kExitNotFound : kExitNotExecutable, std::move(message)};
}

StartFailure ExplainStoreFailure(uint16_t port, int error) {
  const std::string where = port == 0 ? "" : " at port " + std::to_string(port);
  return {kExitOsError, "PyTorch's store can't be served" + where + ": " + std::strerror(error) +
                            "; with --master-store=worker rank 0 hosts it itself"};
}

}  // namespace muster::agent
