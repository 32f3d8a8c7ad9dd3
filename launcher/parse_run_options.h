// From the words and PET_* variables of `muster run` to RunOptions: each value is checked by
// itself, not yet against the machine. Spelling is launcher/command_line.h's; what a flag's value
// means is in the tables of setters, one file for each family of flags. Pure.
#ifndef MUSTER_LAUNCHER_PARSE_RUN_OPTIONS_H_
#define MUSTER_LAUNCHER_PARSE_RUN_OPTIONS_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/run_options.h"

namespace muster::launcher {

// InvalidArgument: one sentence that names the flag (or variable), the value and what is allowed.
// After `--help` or `--version` nothing else is checked.
absl::StatusOr<RunOptions> ParseRunOptions(std::span<const std::string> words,
                                           const GetEnv& get_env);

// The page that `muster run --help` prints.
std::string RunHelp();

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_PARSE_RUN_OPTIONS_H_
