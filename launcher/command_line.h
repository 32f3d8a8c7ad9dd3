// Splits the words of one subcommand into flags and the rest, by a table of flags. Knows spelling
// only; what a value means is decided elsewhere (launcher/parse_run_options.h). Used once at start.
//
// A flag is written `--name=value`, `--name value`, or, where it has a letter, `-x value`,
// `-xvalue`, `-x=value`; dashes within a name may be underscores. Before a program, parsing stops
// at the first word that is no flag, or after `--`: the words from there on are never looked at.
// Letters without a value may stand together with one that has a value behind them (`-mr3`).
//
// torchrun's names may be shortened to what none of its other names begins with, as its users do.
// Ours can't, nor do they count in that, so that a new flag of ours never changes what an old
// command line means.
//
// Flags that mpirun's users know may be written with one dash, and by mpirun's other names for
// them:
// `-host`, `-np`. With two dashes torchrun's shortened names come first (`--np`).
#ifndef MUSTER_LAUNCHER_COMMAND_LINE_H_
#define MUSTER_LAUNCHER_COMMAND_LINE_H_

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

// What people may type who come from another launcher, and what to do instead here.
struct ForeignFlag {
  // With dashes, without the leading ones; several separated by commas.
  std::string_view names;
  // Behind "is mpirun's; ": "write --hostfile".
  std::string_view instead;
};

enum class Origin { kOurs, kTorchrun, kMpirun };

struct FlagSpec {
  // With dashes, without the leading two: "nproc-per-node".
  std::string_view name;
  // What stands for the value in the help, such as "N|cpu|gpu|auto". Empty: the flag takes none.
  std::string_view value_name;
  std::string_view group;
  std::string_view help;
  // The letter of a short form, or 0.
  char letter = 0;
  Origin origin = Origin::kOurs;
  // Of kMpirun: its other names, separated by commas.
  std::string_view also{};

  bool takes_value() const { return !value_name.empty(); }
};

struct CommandLine {
  // What was given, by flag name; the last one wins. A flag without value has "1".
  std::map<std::string, std::string, std::less<>> values;
  // All that was given, in its order.
  std::vector<std::pair<std::string, std::string>> in_order;
  // The program and its arguments, byte for byte.
  std::vector<std::string> rest;
};

// InvalidArgument, with one sentence that names the word, for an unknown flag, one that was
// shortened too far, a missing value, or a value where none belongs. `--help` and `-h` are flags
// like any other: name them in `flags`. For one of `foreign`, written with one dash or two, the
// sentence says what to do instead; with two dashes `flags` come first.
absl::StatusOr<CommandLine> ParseCommandLine(std::span<const FlagSpec> flags,
                                             std::span<const std::string> words,
                                             std::span<const ForeignFlag> foreign = {});

// The same for a command that runs no program: flags may also follow its words. After `--` all are
// words, and a dash alone is one.
absl::StatusOr<CommandLine> ParseWordsAndFlags(std::span<const FlagSpec> flags,
                                               std::span<const std::string> words);

// The page that `--help` prints: `usage` (one or more lines), then the flags by group. Beside flags
// of torchrun's, all others are marked with a star.
std::string HelpPage(std::string_view usage, std::span<const FlagSpec> flags);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_COMMAND_LINE_H_
