// Finds out before anything is started whether what the workers shall execute is there, so that a
// slip ends in one sentence instead of a failure of every worker. Reads the file system.
// Thread-safe.
#ifndef MUSTER_LAUNCHER_PROGRAM_CHECK_H_
#define MUSTER_LAUNCHER_PROGRAM_CHECK_H_

#include <optional>
#include <string>
#include <vector>

namespace muster::launcher {

struct Problem {
  // As a shell's: 127 not found, 126 found but not executable.
  int exit_code = 0;
  // One sentence with the path.
  std::string text;
};

struct ProgramToCheck {
  // argv of the workers.
  std::vector<std::string> argv;
  // argv[0] is Python, chosen by us or by PYTHON_EXEC.
  bool is_python = false;
  // And a script's path comes after "-u".
  bool is_script = false;
  // $PATH, or null.
  const char* search_path = nullptr;
};

// Nothing if all is well. What can't be known here (a module's name) isn't looked at.
std::optional<Problem> CheckProgram(const ProgramToCheck& program);

// Makes the log folder if needed. Returns one sentence if it can't be written.
std::optional<std::string> CheckLogFolder(const std::string& folder);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_PROGRAM_CHECK_H_
