// The executable `muster`: finds the subcommand and ends with its exit code. Called as `musterrun`
// it is `muster run`.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/version.h"
#include "launcher/drain_command.h"
#include "launcher/exit_codes.h"
#include "launcher/logs_command.h"
#include "launcher/nearest_name.h"
#include "launcher/rendezvous_command.h"
#include "launcher/run_command.h"
#include "launcher/say.h"
#include "launcher/ssh/remote_command.h"
#include "launcher/status_command.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr char kHelp[] =
    "muster starts, watches and restarts distributed training jobs.\n"
    "\n"
    "Usage: muster COMMAND [options]\n"
    "\n"
    "Commands:\n"
    "  run          Run a program as a group of workers on one or several nodes\n"
    "  rendezvous   Run the meeting place of the nodes alone, for many jobs\n"
    "  status       Show the jobs of a rendezvous\n"
    "  drain        Let a node leave its jobs, after a checkpoint where they can make one\n"
    "  logs         Show the log files of a run together\n"
    "  version      Print the version\n"
    "  help         Print this page\n"
    "\n"
    "`muster COMMAND --help` lists the options of a command; `musterrun` is `muster run`.\n";

int UnknownCommand(const std::string& word) {
  constexpr std::string_view kNames[] = {"run",  "rendezvous", "status", "drain",
                                         "logs", "version",    "help"};
  bool is_program = word.find_first_of("./") != std::string::npos;
  std::string meant = is_program ? Cat("run ", word) : std::string(NearestName(word, kNames));
  Say(Cat("unknown command \"", word, "\"; did you mean `muster ", meant,
          "`? (`muster help` lists all commands.)"));
  return kExitUsage;
}

int Main(const std::vector<std::string>& argv) {
  std::string_view called = argv.empty() ? "muster" : std::string_view(argv.front());
  called.remove_prefix(called.rfind('/') + 1);
  std::vector<std::string> words(argv.begin() + (argv.empty() ? 0 : 1), argv.end());
  if (called == "musterrun") return RunCommand(words);
  if (words.empty()) {
    Say("no command was named; usage: muster run [options] PROGRAM [arguments] (`muster help` "
        "lists all commands)");
    return kExitUsage;
  }
  std::string command = words.front();
  words.erase(words.begin());
  if (command == "run") return RunCommand(words);
  if (command == "rendezvous") return RendezvousCommand(words);
  if (command == "remote") return RemoteCommand(words);
  if (command == "status") return StatusCommand(words);
  if (command == "drain") return DrainCommand(words);
  if (command == "logs") return LogsCommand(words);
  if (command == "version" || command == "--version") {
    return Print(Cat("muster ", kVersion, "\n")) ? 0 : 1;
  }
  if (command == "help" || command == "--help" || command == "-h") return Print(kHelp) ? 0 : 1;
  return UnknownCommand(command);
}

// Instead of std::terminate's abort when the standard library finds no thread or memory to give.
// The stack isn't unwound: destructors would wait for threads that never began. What was started
// ends with this process.
[[noreturn]] void EndForWantOfResources() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::system_error& error) {
    Say(Cat("the system gives no more threads (", error.code().message(),
            "); raise `ulimit -u`, `ulimit -v` or the container's limit of processes"));
    _exit(kExitOsError);
  } catch (const std::bad_alloc&) {
    Say("the system gives no more memory; raise `ulimit -v` or the container's limit of memory");
    _exit(kExitOsError);
  } catch (const std::exception& error) {
    Say(Cat("a fault of its own: ", error.what()));
  } catch (...) {
  }
  std::abort();
}

// Libraries call abort() without a word when they get no thread, and so does a broken invariant of
// ours. The signal then does what it does by default: code 134, and a core file where they are
// kept.
void ExplainAbort(int /*signal*/) {
  constexpr std::string_view kWords =
      "muster: aborted, by a library that got no thread or memory or by a fault of its own; if "
      "`ulimit -v`, `ulimit -u` or the container's limits are tight, raise them, otherwise please "
      "report it\n";
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, kWords.data(), kWords.size());
  std::signal(SIGABRT, SIG_DFL);
  // Held back until this returns.
  std::raise(SIGABRT);
}

}  // namespace
}  // namespace muster::launcher

int main(int argc, char** argv) {
  std::set_terminate(&muster::launcher::EndForWantOfResources);
  std::signal(SIGABRT, &muster::launcher::ExplainAbort);
  // The system's Abseil looks for deadlocks at every lock that gRPC takes, under one lock of its
  // own.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  int code = muster::launcher::Main(std::vector<std::string>(argv, argv + argc));
  // Not exit(): all of ours is written and closed by now, and gRPC's threads may still run.
  std::fflush(nullptr);
  _exit(code);
}
