#include "launcher/worker_setters.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

// More workers than this on one node is a slip of the finger.
constexpr int64_t kMaxWorkers = 4096;

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

absl::Status SetThreads(const Given& given, RunOptions& options) {
  if (given.text == "auto") {
    options.threads = {.kind = ThreadChoice::Kind::kAuto};
    return absl::OkStatus();
  }
  absl::StatusOr<int> number =
      WholeNumber(given.who, given.text, {1, 65536, "1 to 65536, or auto"});
  if (!number.ok()) return number.status();
  options.threads = {.kind = ThreadChoice::Kind::kNumber, .number = *number};
  return absl::OkStatus();
}

// Two flags have words of their own for one thing.
template <size_t kSize>
absl::Status SetOneBinding(const Given& given, const char* flag,
                           const std::pair<std::string_view, NumaBinding> (&choices)[kSize],
                           std::string_view allowed, RunOptions& options) {
  NumaBinding binding = NumaBinding::kNone;
  if (absl::Status status = SetChoice(given, choices, allowed, binding); !status.ok()) {
    return status;
  }
  if (binding == NumaBinding::kNone) return absl::OkStatus();
  if (options.numa_binding != NumaBinding::kNone && options.binding_flag != flag) {
    return absl::InvalidArgumentError(
        Cat(options.binding_flag, " and ", flag, " both bind workers to processors; give one"));
  }
  options.numa_binding = binding;
  options.binding_flag = flag;
  return absl::OkStatus();
}

// mpirun's words.
absl::Status SetBindTo(const Given& given, RunOptions& options) {
  static constexpr std::pair<std::string_view, NumaBinding> kChoices[] = {
      {"none", NumaBinding::kNone},
      {"core", NumaBinding::kCore},
      {"socket", NumaBinding::kSocket},
      {"numa", NumaBinding::kNode}};
  return SetOneBinding(given, "--bind-to", kChoices, "none, core, socket or numa", options);
}

absl::Status SetBinding(const Given& given, RunOptions& options) {
  static constexpr std::pair<std::string_view, NumaBinding> kChoices[] = {
      {"node", NumaBinding::kNode},
      {"socket", NumaBinding::kSocket},
      {"exclusive", NumaBinding::kExclusive},
      {"core-complex", NumaBinding::kCoreComplex}};
  return SetOneBinding(given, "--numa-binding", kChoices, "node, socket, exclusive or core-complex",
                       options);
}

absl::Status SetInput(const Given& given, RunOptions& options) {
  using Kind = agent::InputChoice::Kind;
  if (given.text == "none") {
    options.input = {.kind = Kind::kNone};
  } else if (given.text == "all") {
    options.input = {.kind = Kind::kAll};
  } else {
    absl::StatusOr<int> rank = WholeNumber(
        given.who, given.text, {0, 1'000'000'000, "none, all, or the rank that reads it"});
    if (!rank.ok()) return rank.status();
    options.input = {.kind = Kind::kRank, .rank = Rank(*rank)};
  }
  return absl::OkStatus();
}

absl::Status SetPreload(const Given& given, RunOptions& options) {
  for (std::string_view module : Split(given.text, ',')) {
    bool is_name = !module.empty() && std::ranges::all_of(module, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80;
    });
    if (!is_name)
      return BadValue(given.who, given.text, "MODULE,MODULE,... as Python imports them");
  }
  options.preload = given.text;
  return absl::OkStatus();
}

// torchrun starts workers that are functions in several ways; ours are programs.
absl::Status SetStartMethod(const Given& given, RunOptions& options) {
  constexpr std::array kMethods = {"spawn", "fork", "forkserver"};
  if (std::ranges::find(kMethods, given.text) == kMethods.end()) {
    return BadValue(given.who, given.text, "spawn, fork or forkserver");
  }
  options.idle.push_back(given.who);
  return absl::OkStatus();
}

constexpr NamedSetter kSetters[] = {
    {"nproc-per-node", SetWorkers},
    {"role", SetName<&RunOptions::role>},
    {"omp-threads", SetThreads},
    {"numa-binding", SetBinding},
    {"bind-to", SetBindTo},
    {"virtual-local-rank", SetTruth<&RunOptions::virtual_local_rank>},
    {"module", SetTruth<&RunOptions::is_module>},
    {"no-python", SetTruth<&RunOptions::no_python>},
    {"run-path", SetTruth<&RunOptions::run_path>},
    {"preload", SetPreload},
    {"stdin", SetInput},
    {"local-rank-in-args", SetTruth<&RunOptions::names_local_rank>},
    {"allow-other-programs", SetTruth<&RunOptions::allow_other_programs>},
    {"start-method", SetStartMethod},
};

}  // namespace

std::span<const NamedSetter> WorkerSetters() { return kSetters; }

}  // namespace muster::launcher
