#include "launcher/output_setters.h"

#include <cctype>
#include <limits>
#include <vector>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr int64_t kMaxLocalRank = 4095;
// A smaller file would be put aside at every few lines.
constexpr int64_t kLeastLogBytes = 64 << 10;

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
    absl::StatusOr<int> rank = WholeNumber(given.who, parts[0], {0, kMaxLocalRank, kValue.allowed});
    absl::StatusOr<int> value = WholeNumber(given.who, parts[1], kValue);
    if (!rank.ok() || !value.ok()) return BadValue(given.who, given.text, kValue.allowed);
    streams.by_local_rank[*rank] = *value;
  }
  return absl::OkStatus();
}

absl::Status SetShownRanks(const Given& given, RunOptions& options) {
  if (given.text.empty()) return absl::OkStatus();
  for (std::string_view part : Split(given.text, ',')) {
    absl::StatusOr<int> rank =
        WholeNumber(given.who, Strip(part), {0, kMaxLocalRank, "local ranks, such as 0,1,2"});
    if (!rank.ok()) {
      return IsTooLarge(Strip(part), kMaxLocalRank)
                 ? rank.status()
                 : BadValue(given.who, given.text, "local ranks, such as 0,1,2");
    }
    options.shown_ranks.insert(*rank);
  }
  return absl::OkStatus();
}

// At each comma; two commas stand for one within a filter.
template <auto kField>
absl::Status SetFilters(const Given& given, RunOptions& options) {
  if (given.text.empty()) return absl::OkStatus();
  std::vector<std::string> filters(1);
  for (size_t i = 0; i < given.text.size(); ++i) {
    if (given.text[i] != ',') {
      filters.back() += given.text[i];
    } else if (i + 1 < given.text.size() && given.text[i + 1] == ',') {
      filters.back() += given.text[++i];
    } else {
      filters.emplace_back();
    }
  }
  options.*kField = std::move(filters);
  return absl::OkStatus();
}

absl::Status SetLogsSpecs(const Given& given, RunOptions& /*options*/) {
  // torchrun's own.
  if (given.text == "default") return absl::OkStatus();
  return absl::InvalidArgumentError(
      Cat(given.who, "=", InQuotes(given.text),
          " names a class of a Python package, which muster can't load; leave it out and use "
          "--log-dir, --tee and --redirects"));
}

// No handler of torchrun's can be loaded, and "null" is none.
absl::Status SetEventHandler(const Given& given, RunOptions& options) {
  if (given.text != "null") options.idle.push_back(given.who);
  return absl::OkStatus();
}

absl::Status SetLogMaxBytes(const Given& given, RunOptions& options) {
  constexpr char kAllowed[] = "bytes, such as 1000000, 512K, 100M or 2G; at least 64K";
  std::string_view digits = given.text;
  int64_t unit = 1;
  if (!digits.empty()) {
    switch (std::toupper(static_cast<unsigned char>(digits.back()))) {
      case 'K':
        unit = int64_t{1} << 10;
        break;
      case 'M':
        unit = int64_t{1} << 20;
        break;
      case 'G':
        unit = int64_t{1} << 30;
        break;
      default:
        break;
    }
    if (unit > 1) digits.remove_suffix(1);
  }
  absl::StatusOr<int> number =
      WholeNumber(given.who, digits, {1, std::numeric_limits<int>::max(), kAllowed});
  if (!number.ok() && IsTooLarge(digits, std::numeric_limits<int>::max())) return number.status();
  if (!number.ok() || *number * unit < kLeastLogBytes) {
    return BadValue(given.who, given.text, kAllowed);
  }
  options.log_max_bytes = *number * unit;
  return absl::OkStatus();
}

template <auto kField>
absl::Status SetSelection(const Given& given, RunOptions& options) {
  return SetStreams(given, options.*kField);
}

absl::Status SetPrefix(const Given& given, RunOptions& options) {
  static constexpr std::pair<std::string_view, PrefixChoice> kChoices[] = {
      {"auto", PrefixChoice::kAuto},
      {"always", PrefixChoice::kAlways},
      {"never", PrefixChoice::kNever}};
  return SetChoice(given, kChoices, "auto, always or never", options.prefix);
}

constexpr NamedSetter kSetters[] = {
    {"log-dir", SetText<&RunOptions::log_dir>},
    {"redirects", SetSelection<&RunOptions::redirects>},
    {"tee", SetSelection<&RunOptions::tee>},
    {"local-ranks-filter", SetShownRanks},
    {"duplicate-stdout-filters", SetFilters<&RunOptions::stdout_filters>},
    {"duplicate-stderr-filters", SetFilters<&RunOptions::stderr_filters>},
    {"log-max-bytes", SetLogMaxBytes},
    {"logs-specs", SetLogsSpecs},
    {"event-log-handler", SetEventHandler},
    {"result-file", SetFile<&RunOptions::result_file>},
    {"prefix", SetPrefix},
    {"log-line-prefix-template", SetText<&RunOptions::prefix_pattern>},
};

}  // namespace

std::span<const NamedSetter> OutputSetters() { return kSetters; }

}  // namespace muster::launcher
