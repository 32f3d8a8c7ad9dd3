// Why the kernel refuses to execute a file that is there and may be executed: exec(3) says "No such
// file or directory" of a script whose interpreter is missing, and names neither. Reads the file
// system. Thread-safe.
#ifndef MUSTER_AGENT_PROCESS_PROGRAM_FILE_H_
#define MUSTER_AGENT_PROCESS_PROGRAM_FILE_H_

#include <optional>
#include <string>

namespace muster::agent {

struct ProgramFlaw {
  // As errno of exec(3): ENOENT, the interpreter is missing; EACCES, it may not be executed.
  int error = 0;
  // A clause: "the interpreter \"/no/such\" of its #! line does not exist".
  std::string text;
};

// Follows the interpreters of `path` (`#!` line, or the loader that a dynamic binary names).
// Nothing if all of them are there, or if the file can't be read: whether it may be executed isn't
// asked here.
std::optional<ProgramFlaw> FlawOfProgram(const std::string& path);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_PROGRAM_FILE_H_
