#include "launcher/meeting_setters.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "launcher/endpoint.h"
#include "launcher/nearest_name.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

absl::Status SetNodes(const Given& given, RunOptions& options) {
  constexpr WholeRange kRange{1, 1'000'000, "N or MIN:MAX with 1 <= MIN <= MAX"};
  std::vector<std::string_view> parts = Split(given.text, ':');
  if (parts.size() > 2) return BadValue(given.who, given.text, kRange.allowed);
  for (std::string_view part : parts) {
    if (IsTooLarge(part, kRange.max)) return TooLarge(given.who, given.text, kRange);
  }
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

// Keys of torchrun's rendezvous that have no meaning here; a script may well set them.
constexpr std::string_view kIdleConfKeys[] = {
    "close_timeout", "heartbeat_timeout", "keep_alive_interval", "keep_alive_max_attempt",
    "read_timeout",  "store_type",        "use_libuv",           "rank"};

absl::Status SetConfPair(std::string_view who, std::string_view key, std::string_view value,
                         RunOptions& options) {
  Duration lease{};
  const std::pair<std::string_view, Duration*> kDurations[] = {
      {"join_timeout", &options.join_timeout},
      // Static layout's name for the same.
      {"timeout", &options.join_timeout},
      {"last_call_timeout", &options.last_call_timeout},
      {"lease", &lease}};
  std::string full = Cat(who, " ", key);
  std::vector<std::string_view> known(std::begin(kIdleConfKeys), std::end(kIdleConfKeys));
  if (std::ranges::find(known, key) != known.end()) {
    options.idle.push_back(std::move(full));
    return absl::OkStatus();
  }
  known.insert(known.end(), {"is_host", "is_new"});
  if (key == "is_host" || key == "is_new") {
    absl::StatusOr<bool> truth = Truth(full, value);
    if (!truth.ok()) return truth.status();
    if (key == "is_host") {
      options.is_host = *truth;
    } else {
      options.is_new = *truth;
    }
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
    if (key == "lease") options.lease = lease;
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

absl::Status SetRunId(const Given& given, RunOptions& options) {
  // It names a folder below --log-dir, and is shown on every node.
  if (given.text.find_first_of("/ ") != std::string::npos ||
      VisibleText(given.text) != given.text || given.text == "." || given.text == ".." ||
      given.text.size() > 200) {
    return BadValue(given.who, given.text,
                    "up to 200 characters without blanks, slashes and control characters");
  }
  options.run_id = given.text;
  return absl::OkStatus();
}

absl::Status SetNodeRank(const Given& given, RunOptions& options) {
  constexpr WholeRange kRank{0, 1'000'000, "a whole number, 0 or more"};
  return Assign(WholeNumber(given.who, given.text, kRank), options.node_rank);
}

absl::Status SetMasterAddr(const Given& given, RunOptions& options) {
  if (given.text.empty()) return absl::OkStatus();
  options.master_addr_given = true;
  absl::Status status = SetWord(given, options.master_addr);
  // As torchrun's help writes an IPv6 address.
  std::string& host = options.master_addr;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return status;
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

absl::Status SetTopologyKey(const Given& given, RunOptions& options) {
  // As long as a message carries.
  if (given.text.size() > 256) {
    return BadValue(given.who, given.text, "a name of at most 256 bytes");
  }
  return SetWord(given, options.topology_key);
}

constexpr NamedSetter kSetters[] = {
    {"standalone", SetTruth<&RunOptions::standalone>},
    {"nnodes", SetNodes},
    {"node-rank", SetNodeRank},
    {"topology-key", SetTopologyKey},
    {"master-addr", SetMasterAddr},
    {"master-port", SetMasterPort},
    {"master-store", SetMasterStore},
    {"rdzv-backend", SetBackend},
    {"rdzv-endpoint", SetEndpoint},
    {"rdzv-id", SetRunId},
    {"rdzv-conf", SetConf},
    {"local-addr", SetName<&RunOptions::local_addr>},
};

}  // namespace

std::span<const NamedSetter> MeetingSetters() { return kSetters; }

}  // namespace muster::launcher
