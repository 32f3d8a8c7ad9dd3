#include "launcher/run_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "agent/core/signal_name.h"
#include "base/env.h"
#include "launcher/flag_value.h"
#include "launcher/nearest_name.h"
#include "launcher/run_flags.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr WholeRange kAtLeast0{0, 1'000'000, "a whole number, 0 or more"};
// More workers than this on one node is a slip of the finger.
constexpr int64_t kMaxWorkers = 4096;
constexpr int kMaxSignal = 64;

// The text of one flag, and what to call it in a message: the flag or its variable.
struct Given {
  std::string who;
  std::string text;
};

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
    if (flag.group == kOtherFlags) continue;
    std::string variable = VariableName(name);
    const char* value = get_env(variable.c_str());
    // An empty variable is a script's way of not setting it.
    if (value != nullptr && *value != '\0') given[name] = {variable, value};
  }
  return given;
}

absl::Status SetNodes(const Given& given, RunOptions& options) {
  constexpr WholeRange kRange{1, 1'000'000, "N or MIN:MAX with 1 <= MIN <= MAX"};
  std::vector<std::string_view> parts = Split(given.text, ':');
  if (parts.size() > 2) return BadValue(given.who, given.text, kRange.allowed);
  absl::StatusOr<int> min = WholeNumber(given.who, parts.front(), kRange);
  absl::StatusOr<int> max = WholeNumber(given.who, parts.back(), kRange);
  if (!min.ok() || !max.ok() || *min > *max) {
    return BadValue(given.who, given.text, kRange.allowed);
  }
  options.min_nodes = *min;
  options.max_nodes = *max;
  options.nodes_given = true;
  return absl::OkStatus();
}

absl::Status SetWorkers(const Given& given, RunOptions& options) {
  if (given.text == "cpu") {
    options.workers.kind = WorkerCount::Kind::kCpu;
  } else if (given.text == "gpu") {
    options.workers.kind = WorkerCount::Kind::kGpu;
  } else if (given.text == "auto") {
    options.workers.kind = WorkerCount::Kind::kAuto;
  } else {
    absl::StatusOr<int> number =
        WholeNumber(given.who, given.text, {1, kMaxWorkers, "1 to 4096, cpu, gpu or auto"});
    if (!number.ok()) return number.status();
    options.workers.number = *number;
  }
  return absl::OkStatus();
}

absl::Status SetBackend(const Given& given, RunOptions& options) {
  if (given.text == "static") {
    options.backend = Backend::kStatic;
  } else if (given.text == "c10d") {
    options.backend = Backend::kElastic;
  } else {
    return BadValue(given.who, given.text,
                    "static or c10d (muster's own rendezvous takes the place of both and of etcd)");
  }
  return absl::OkStatus();
}

absl::Status SetStreams(const Given& given, StreamSelection& streams) {
  constexpr WholeRange kValue{0, 3, "0 (none), 1 (stdout), 2 (stderr), 3 (both), or RANK:V,..."};
  if (given.text.find(':') == std::string::npos) {
    absl::StatusOr<int> value = WholeNumber(given.who, given.text, kValue);
    if (!value.ok()) return value.status();
    streams.of_all = *value;
    return absl::OkStatus();
  }
  for (std::string_view pair : Split(given.text, ',')) {
    std::vector<std::string_view> parts = Split(pair, ':');
    if (parts.size() != 2) return BadValue(given.who, given.text, kValue.allowed);
    absl::StatusOr<int> rank = WholeNumber(given.who, parts[0], {0, kMaxWorkers, kValue.allowed});
    absl::StatusOr<int> value = WholeNumber(given.who, parts[1], kValue);
    if (!rank.ok() || !value.ok()) return BadValue(given.who, given.text, kValue.allowed);
    streams.by_local_rank[*rank] = *value;
  }
  return absl::OkStatus();
}

// Keys of torchrun's rendezvous that have no meaning here; a script may well set them.
constexpr std::string_view kIdleConfKeys[] = {
    "close_timeout", "heartbeat_timeout", "keep_alive_interval", "keep_alive_max_attempt",
    "read_timeout",  "store_type",        "use_libuv",           "rank"};

absl::Status SetConfPair(std::string_view who, std::string_view key, std::string_view value,
                         RunOptions& options) {
  const std::pair<std::string_view, Duration*> kDurations[] = {
      {"join_timeout", &options.join_timeout},
      // Static layout's name for the same.
      {"timeout", &options.join_timeout},
      {"last_call_timeout", &options.last_call_timeout},
      {"lease", &options.lease}};
  std::string full = Cat(who, " ", key);
  std::vector<std::string_view> known(std::begin(kIdleConfKeys), std::end(kIdleConfKeys));
  if (std::ranges::find(known, key) != known.end()) return absl::OkStatus();
  known.push_back("is_host");
  if (key == "is_host") {
    absl::StatusOr<bool> truth = Truth(full, value);
    if (!truth.ok()) return truth.status();
    options.is_host = *truth;
    return absl::OkStatus();
  }
  for (const auto& [name, target] : kDurations) {
    known.push_back(name);
    if (name != key) continue;
    absl::StatusOr<Duration> seconds = Seconds(full, value);
    if (!seconds.ok()) return seconds.status();
    // Below this, heartbeats on a busy machine would come too late.
    if (key == "lease" && *seconds < std::chrono::seconds(1)) {
      return BadValue(full, value, "at least 1 second");
    }
    *target = *seconds;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      Cat(who, ": unknown key ", InQuotes(key), "; did you mean ", NearestName(key, known), "?"));
}

absl::Status SetConf(const Given& given, RunOptions& options) {
  if (given.text.empty()) return absl::OkStatus();
  for (std::string_view pair : Split(given.text, ',')) {
    size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return BadValue(given.who, given.text, "KEY=VALUE,KEY=VALUE");
    }
    std::string_view key = Strip(pair.substr(0, equals));
    std::string_view value = Strip(pair.substr(equals + 1));
    if (absl::Status set = SetConfPair(given.who, key, value, options); !set.ok()) return set;
  }
  return absl::OkStatus();
}

absl::Status SetLostContact(const Given& given, RunOptions& options) {
  if (given.text == "auto") {
    options.lost_contact = agent::LostContact::kAuto;
  } else if (given.text == "go-on") {
    options.lost_contact = agent::LostContact::kGoOn;
  } else if (given.text == "stop") {
    options.lost_contact = agent::LostContact::kStop;
  } else {
    return BadValue(given.who, given.text, "auto, go-on or stop");
  }
  return absl::OkStatus();
}

absl::Status SetScaleUp(const Given& given, RunOptions& options) {
  if (given.text == "auto") {
    options.scale_up = ScaleUp::kAuto;
  } else if (given.text == "immediate") {
    options.scale_up = ScaleUp::kImmediate;
  } else if (given.text == "checkpoint") {
    options.scale_up = ScaleUp::kCheckpoint;
  } else {
    return BadValue(given.who, given.text, "auto, immediate or checkpoint");
  }
  return absl::OkStatus();
}

absl::Status SetPreemptionSignal(const Given& given, RunOptions& options) {
  if (given.text == "USR1" || given.text == "SIGUSR1") {
    options.preemption_signal = SIGUSR1;
  } else if (given.text == "USR2" || given.text == "SIGUSR2") {
    options.preemption_signal = SIGUSR2;
  } else {
    return BadValue(given.who, given.text, "USR1 or USR2 (SIGTERM announces one anyway)");
  }
  return absl::OkStatus();
}

absl::Status SetPrefix(const Given& given, RunOptions& options) {
  if (given.text == "auto") {
    options.prefix = PrefixChoice::kAuto;
  } else if (given.text == "always") {
    options.prefix = PrefixChoice::kAlways;
  } else if (given.text == "never") {
    options.prefix = PrefixChoice::kNever;
  } else {
    return BadValue(given.who, given.text, "auto, always or never");
  }
  return absl::OkStatus();
}

// Assigns a StatusOr's value, or passes its status on.
template <class Value, class Target>
absl::Status Assign(absl::StatusOr<Value> value, Target& target) {
  if (!value.ok()) return value.status();
  target = *std::move(value);
  return absl::OkStatus();
}

// Names of hosts and ids go into messages, paths and resolvers.
absl::Status SetWord(const Given& given, std::string& target) {
  if (given.text.find_first_of(" \t\r\n") != std::string::npos) {
    return BadValue(given.who, given.text, "a name without blanks");
  }
  target = given.text;
  return absl::OkStatus();
}

absl::Status SetRunId(const Given& given, RunOptions& options) {
  // It names a folder below --log-dir.
  if (given.text.find_first_of("/ \t\r\n") != std::string::npos || given.text == "." ||
      given.text == ".." || given.text.size() > 200) {
    return BadValue(given.who, given.text, "up to 200 characters without blanks and slashes");
  }
  options.run_id = given.text;
  return absl::OkStatus();
}

absl::Status SetNodeRank(const Given& given, RunOptions& options) {
  return Assign(WholeNumber(given.who, given.text, kAtLeast0), options.node_rank);
}

absl::Status SetMasterAddr(const Given& given, RunOptions& options) {
  if (given.text.empty()) return absl::OkStatus();
  options.master_addr_given = true;
  return SetWord(given, options.master_addr);
}

absl::Status SetMasterPort(const Given& given, RunOptions& options) {
  return Assign(PortNumber(given.who, given.text), options.master_port);
}

absl::Status SetMasterStore(const Given& given, RunOptions& options) {
  if (given.text == "agent") {
    options.master_store = StoreChoice::kAgent;
  } else if (given.text == "worker") {
    options.master_store = StoreChoice::kWorker;
  } else {
    return BadValue(given.who, given.text, "agent or worker");
  }
  return absl::OkStatus();
}

absl::Status SetEndpoint(const Given& given, RunOptions& options) {
  if (given.text.empty()) return absl::OkStatus();
  if (!ParseEndpoint(given.text, 0).has_value()) {
    return BadValue(given.who, given.text, "HOST or HOST:PORT, an IPv6 address in brackets");
  }
  options.rdzv_endpoint = given.text;
  return absl::OkStatus();
}

absl::Status SetIdle(const Given& given, RunOptions&) {
  return Seconds(given.who, given.text).status();
}

absl::Status SetStartMethod(const Given& given, RunOptions&) {
  constexpr std::array kMethods = {"spawn", "fork", "forkserver"};
  if (std::ranges::find(kMethods, given.text) != kMethods.end()) return absl::OkStatus();
  return BadValue(given.who, given.text, "spawn, fork or forkserver");
}

absl::Status SetHangTimeout(const Given& given, RunOptions& options) {
  absl::StatusOr<Duration> seconds = Seconds(given.who, given.text);
  if (!seconds.ok()) return seconds.status();
  // Below this, a worker on a busy machine can't answer in time.
  if (*seconds > Duration(0) && *seconds < std::chrono::seconds(1)) {
    return BadValue(given.who, given.text, "0 (off), or at least 1 second");
  }
  options.hang_timeout = *seconds;
  return absl::OkStatus();
}

absl::Status SetStackSignal(const Given& given, RunOptions& options) {
  options.stack_signal = 0;
  if (given.text == "none") return absl::OkStatus();
  std::string wanted = given.text.starts_with("SIG") ? given.text : "SIG" + given.text;
  for (int signal = 1; signal <= kMaxSignal; ++signal) {
    // These end or stop a process whatever it does.
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    if (agent::SignalName(signal) == wanted) options.stack_signal = signal;
  }
  if (options.stack_signal != 0) return absl::OkStatus();
  return BadValue(given.who, given.text, "the name of a signal that can be caught, or none");
}

using Setter = absl::Status (*)(const Given&, RunOptions&);

template <Duration RunOptions::*kField>
absl::Status SetSeconds(const Given& given, RunOptions& options) {
  return Assign(Seconds(given.who, given.text), options.*kField);
}

template <bool RunOptions::*kField>
absl::Status SetTruth(const Given& given, RunOptions& options) {
  return Assign(Truth(given.who, given.text), options.*kField);
}

template <std::string RunOptions::*kField>
absl::Status SetText(const Given& given, RunOptions& options) {
  options.*kField = given.text;
  return absl::OkStatus();
}

// An option that was given shall not be off without a word.
template <std::string RunOptions::*kField>
absl::Status SetFile(const Given& given, RunOptions& options) {
  if (given.text.empty() || given.text.back() == '/') {
    return BadValue(given.who, given.text, "the path of a file; leave the option out for none");
  }
  options.*kField = given.text;
  return absl::OkStatus();
}

template <std::string RunOptions::*kField>
absl::Status SetName(const Given& given, RunOptions& options) {
  return SetWord(given, options.*kField);
}

template <StreamSelection RunOptions::*kField>
absl::Status SetSelection(const Given& given, RunOptions& options) {
  return SetStreams(given, options.*kField);
}

template <int RunOptions::*kField>
absl::Status SetCount(const Given& given, RunOptions& options) {
  return Assign(WholeNumber(given.who, given.text, kAtLeast0), options.*kField);
}

absl::Status SetTopologyKey(const Given& given, RunOptions& options) {
  // As long as a message carries.
  if (given.text.size() > 256) {
    return BadValue(given.who, given.text, "a name of at most 256 bytes");
  }
  return SetWord(given, options.topology_key);
}

absl::Status SetPreload(const Given& given, RunOptions& options) {
  for (std::string_view module : Split(given.text, ',')) {
    bool is_name = !module.empty() && std::ranges::all_of(module, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80;
    });
    if (!is_name) return BadValue(given.who, given.text, "MODULE,MODULE,... as Python imports them");
  }
  options.preload = given.text;
  return absl::OkStatus();
}

constexpr std::pair<std::string_view, Setter> kSetters[] = {
    {"standalone", SetTruth<&RunOptions::standalone>},
    {"nnodes", SetNodes},
    {"nproc-per-node", SetWorkers},
    {"node-rank", SetNodeRank},
    {"topology-key", SetTopologyKey},
    {"role", SetName<&RunOptions::role>},
    {"master-addr", SetMasterAddr},
    {"master-port", SetMasterPort},
    {"master-store", SetMasterStore},
    {"rdzv-backend", SetBackend},
    {"rdzv-endpoint", SetEndpoint},
    {"rdzv-id", SetRunId},
    {"rdzv-conf", SetConf},
    {"local-addr", SetName<&RunOptions::local_addr>},
    {"module", SetTruth<&RunOptions::is_module>},
    {"no-python", SetTruth<&RunOptions::no_python>},
    {"preload", SetPreload},
    {"allow-other-programs", SetTruth<&RunOptions::allow_other_programs>},
    {"start-method", SetStartMethod},
    {"max-restarts", SetCount<&RunOptions::max_restarts>},
    {"max-restarts-per-hour", SetCount<&RunOptions::max_restarts_per_hour>},
    {"min-uptime", SetSeconds<&RunOptions::min_uptime>},
    {"max-early-failures", SetCount<&RunOptions::max_early_failures>},
    {"max-stuck-restarts", SetCount<&RunOptions::max_stuck_restarts>},
    {"max-node-failures", SetCount<&RunOptions::max_node_failures>},
    {"shutdown-timeout", SetSeconds<&RunOptions::shutdown_timeout>},
    {"preemption-file", SetFile<&RunOptions::preemption_file>},
    {"preemption-signal", SetPreemptionSignal},
    {"scale-up", SetScaleUp},
    {"lost-peer-grace", SetSeconds<&RunOptions::lost_peer_grace>},
    {"reconnect-timeout", SetSeconds<&RunOptions::reconnect_timeout>},
    {"lost-contact", SetLostContact},
    {"hang-timeout", SetHangTimeout},
    {"stack-signal", SetStackSignal},
    {"monitor-interval", SetIdle},
    {"log-dir", SetText<&RunOptions::log_dir>},
    {"result-file", SetFile<&RunOptions::result_file>},
    {"redirects", SetSelection<&RunOptions::redirects>},
    {"tee", SetSelection<&RunOptions::tee>},
    {"prefix", SetPrefix},
};

absl::Status CheckTogether(const RunOptions& options) {
  if (options.is_module && options.no_python) {
    return absl::InvalidArgumentError(
        "-m and --no-python exclude each other: a module can only be run by Python");
  }
  if (options.no_python && !options.preload.empty()) {
    return absl::InvalidArgumentError(
        "--preload and --no-python exclude each other: only Python imports modules");
  }
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
  absl::StatusOr<CommandLine> line = ParseCommandLine(kRunFlags, words);
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
  for (const auto& [name, set] : kSetters) {
    auto it = given.find(name);
    if (it == given.end()) continue;
    if (absl::Status status = set(it->second, options); !status.ok()) return status;
  }
  options.program = std::move(line->rest);
  if (absl::Status status = CheckTogether(options); !status.ok()) return status;
  return options;
}

std::string RunHelp() {
  return HelpPage(
      "Starts a group of workers on one or several nodes, watches them, and starts them again\n"
      "when one fails. Every option may also be set as PET_<NAME>, as with torchrun.\n\n"
      "Usage: muster run [options] [--] PROGRAM [arguments of the program]\n",
      kRunFlags);
}

}  // namespace muster::launcher
