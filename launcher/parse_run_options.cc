#include "launcher/parse_run_options.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/env.h"
#include "launcher/command_line.h"
#include "launcher/fault_setters.h"
#include "launcher/meeting_setters.h"
#include "launcher/mpirun_options.h"
#include "launcher/output_setters.h"
#include "launcher/run_flags.h"
#include "launcher/run_setters.h"
#include "launcher/ssh/ssh_setters.h"
#include "launcher/text.h"
#include "launcher/worker_setters.h"

namespace muster::launcher {
namespace {

using GivenByName = std::map<std::string, Given, std::less<>>;

std::string VariableName(std::string_view flag) {
  std::string name = "PET_";
  for (char c : flag) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

GivenByName Collect(const CommandLine& line, const GetEnv& get_env) {
  GivenByName given;
  for (const FlagSpec& flag : kRunFlags) {
    std::string name(flag.name);
    if (auto it = line.values.find(name); it != line.values.end()) {
      given[name] = {"--" + name, it->second};
      continue;
    }
    // --help and --version, two that torchrun reads from its command line alone, and variables
    // themselves.
    if (flag.group == kOtherFlags || name == "logs-specs" || name == "numa-binding") continue;
    if (name == "env") continue;
    std::string variable = VariableName(name);
    const char* value = get_env(variable.c_str());
    // An empty variable is a script's way of not setting it.
    if (value != nullptr && *value != '\0') given[name] = {variable, value};
  }
  return given;
}

// What the hosts of --hosts are told of the flags.
void KeepForHosts(const CommandLine& line, const GivenByName& given, SshOptions& ssh) {
  auto is_ssh = [](const FlagSpec& flag) { return flag.group == kSshFlags; };
  for (const auto& [name, value] : line.in_order) {
    if (name == "env") ssh.variables.push_back(value);
    const auto* flag = std::ranges::find(kRunFlags, name, &FlagSpec::name);
    if (is_ssh(*flag)) continue;
    ssh.flags.push_back("--" + name + (flag->takes_value() ? "=" + value : ""));
  }
  for (const FlagSpec& flag : kRunFlags) {
    auto it = given.find(flag.name);
    if (it != given.end() && !is_ssh(flag)) ssh.given[std::string(flag.name)] = it->second.text;
  }
}

// A variable that a whole cluster sets for its Python jobs must not be in the way of the others.
void DropPreloadWithoutPython(const GivenByName& given, RunOptions& options) {
  if (!options.no_python || options.preload.empty()) return;
  const std::string& who = given.at("preload").who;
  if (who == "--preload") return;  // said for this job: refused
  options.ignored.push_back(
      Cat(who, "=", options.preload,
          " is ignored, as --no-python runs a program that isn't Python; unset it for such jobs"));
  options.preload.clear();
}

absl::Status CheckTogether(const RunOptions& options) {
  if (options.is_module && options.no_python) {
    return absl::InvalidArgumentError(
        "-m and --no-python exclude each other: a module can only be run by Python");
  }
  if (options.no_python && !options.preload.empty()) {
    return absl::InvalidArgumentError(
        "--preload and --no-python exclude each other: only Python imports modules");
  }
  if (absl::Status checked = CheckSshTogether(options); !checked.ok()) return checked;
  if (options.program.empty()) {
    return absl::InvalidArgumentError(
        "no program was named; usage: muster run [options] PROGRAM [arguments]");
  }
  if (options.program.front().empty()) {
    return absl::InvalidArgumentError("the name of the program is empty");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunOptions> ParseRunOptions(std::span<const std::string> words,
                                           const GetEnv& get_env) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(kRunFlags, words, kMpirunOptions);
  if (!line.ok()) return line.status();
  RunOptions options;
  options.wants_help = line->values.contains("help");
  options.wants_version = line->values.contains("version");
  if (options.wants_help || options.wants_version) return options;

  GivenByName given = Collect(*line, get_env);
  const char* timeout = get_env(env::kShutdownTimeout);
  if (timeout != nullptr && *timeout != '\0' && !given.contains("shutdown-timeout")) {
    given["shutdown-timeout"] = {env::kShutdownTimeout, timeout};
  }
  const char* topology = get_env(env::kTopologyKey);
  if (topology != nullptr && *topology != '\0' && !given.contains("topology-key")) {
    given["topology-key"] = {env::kTopologyKey, topology};
  }
  const char* no_store = get_env(env::kNoAgentStore);
  if (no_store != nullptr && std::string_view(no_store) == "1" && !given.contains("master-store")) {
    given["master-store"] = {env::kNoAgentStore, "worker"};
  }
  for (const auto& setters :
       {MeetingSetters(), SshSetters(), WorkerSetters(), FaultSetters(), OutputSetters()}) {
    for (const auto& [name, set] : setters) {
      auto it = given.find(name);
      if (it == given.end()) continue;
      if (absl::Status status = set(it->second, options); !status.ok()) return status;
    }
  }
  KeepForHosts(*line, given, options.ssh);
  // As torchrun has it, whatever else is said.
  if (options.run_path) options.is_module = options.no_python = false;
  DropPreloadWithoutPython(given, options);
  options.program = std::move(line->rest);
  if (absl::Status status = CheckTogether(options); !status.ok()) return status;
  return options;
}

std::string RunHelp() {
  return HelpPage(
      "Starts a group of workers on one or several nodes, watches them, and starts them again\n"
      "when one fails. Every option may also be set as PET_<NAME>, as with torchrun, but for\n"
      "--logs-specs, --numa-binding and -x. Those marked * aren't torchrun's.\n\n"
      "Usage: muster run [options] [--] PROGRAM [arguments of the program]\n",
      kRunFlags);
}

}  // namespace muster::launcher
