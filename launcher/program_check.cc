#include "launcher/program_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "agent/process/program_file.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// glibc's own when PATH isn't set.
constexpr char kDefaultPath[] = "/bin:/usr/bin";

enum class Found { kNothing, kNotExecutable, kFolder, kExecutable };

Found Look(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    // A folder on the way that may not be searched hides a file that may well be there.
    return errno == EACCES ? Found::kNotExecutable : Found::kNothing;
  }
  if (S_ISDIR(status.st_mode)) return Found::kFolder;
  // Effective ids, as exec uses them.
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? Found::kExecutable
                                                                  : Found::kNotExecutable;
}

// exec would say "No such file or directory" of a program that is there.
std::optional<Problem> CheckInterpreter(const std::string& path) {
  std::optional<agent::ProgramFlaw> flaw = agent::FlawOfProgram(path);
  if (!flaw) return std::nullopt;
  return Problem{flaw->error == ENOENT ? 127 : 126,
                 Cat("the program \"", path, "\" can't be executed: ", flaw->text)};
}

std::optional<Problem> CheckPath(const std::string& path) {
  switch (Look(path)) {
    case Found::kExecutable:
      return CheckInterpreter(path);
    case Found::kNothing:
      return Problem{127, Cat("the program \"", path, "\" does not exist; check the path")};
    case Found::kFolder:
      return Problem{126, Cat("the program \"", path, "\" is a folder")};
    case Found::kNotExecutable:
      break;
  }
  return Problem{126, Cat("the program \"", path,
                          "\" is not executable; `chmod +x` it, or leave --no-python out "
                          "if it is a Python script")};
}

std::optional<Problem> CheckSearched(const std::string& name, const char* search_path) {
  std::string hidden;
  for (std::string_view folder : Split(search_path != nullptr ? search_path : kDefaultPath, ':')) {
    std::string path = Cat(folder.empty() ? "." : folder, "/", name);
    Found found = Look(path);
    if (found == Found::kExecutable) return CheckInterpreter(path);
    if (found == Found::kNotExecutable && hidden.empty()) hidden = path;
  }
  if (!hidden.empty()) {
    return Problem{126, Cat("the program \"", hidden, "\" is not executable")};
  }
  return Problem{127, Cat("the program \"", name,
                          "\" was not found in any folder of PATH; give its path, such as "
                          "./",
                          name)};
}

std::optional<Problem> CheckScript(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return Problem{127,
                   Cat("the Python script \"", path, "\" can't be found: ", std::strerror(errno),
                       "; check the path, or add --no-python for another program")};
  }
  if (faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
    return Problem{126,
                   Cat("the Python script \"", path, "\" can't be read: ", std::strerror(errno))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> CheckProgram(const ProgramToCheck& program) {
  const std::string& name = program.argv.front();
  std::optional<Problem> problem = name.find('/') != std::string::npos
                                       ? CheckPath(name)
                                       : CheckSearched(name, program.search_path);
  if (problem.has_value() && program.is_python) {
    problem->text += " (it is the Python interpreter; PYTHON_EXEC names another)";
  }
  if (problem.has_value() || !program.is_script) return problem;
  return CheckScript(program.argv.at(2));
}

std::optional<std::string> CheckLogFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder, error) && !error) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (!error && faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!error) return std::nullopt;
  return Cat("--log-dir=", folder, ": can't be written: ", error.message(),
             "; name a folder that this user may write");
}

}  // namespace muster::launcher
