// Where log lines of the shells (spdlog) go and which of them: stderr, since stdout belongs to the
// workers. Called once by a subcommand before anything logs.
#ifndef MUSTER_LAUNCHER_LOG_SETUP_H_
#define MUSTER_LAUNCHER_LOG_SETUP_H_

namespace muster::launcher {

enum class LogVolume {
  // What a user has to act on; for commands that speak for themselves.
  kWarnings,
  // Every change of state; for a daemon.
  kEvents,
};

// $LOGLEVEL (DEBUG, INFO, WARNING, ERROR, as torchrun reads it) wins over `volume`.
void SetUpLog(LogVolume volume);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_LOG_SETUP_H_
