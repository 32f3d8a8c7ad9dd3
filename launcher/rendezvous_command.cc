#include "launcher/rendezvous_command.h"

#include <future>

#include "absl/status/statusor.h"
#include "agent/guardian/descriptor_limit.h"
#include "base/signal_name.h"
#include "base/version.h"
#include "launcher/addresses.h"
#include "launcher/command_line.h"
#include "launcher/endpoint.h"
#include "launcher/exit_codes.h"
#include "launcher/flag_value.h"
#include "launcher/log_setup.h"
#include "launcher/port_holder.h"
#include "launcher/say.h"
#include "launcher/stop_signals.h"
#include "launcher/text.h"
#include "rendezvous/server/rendezvous_server.h"

namespace muster::launcher {
namespace {

constexpr char kWhere[] = "Where";
constexpr char kHow[] = "How";
constexpr char kOther[] = "Other";

constexpr FlagSpec kFlags[] = {
    {"listen", "[HOST]:PORT", kWhere, "Where to listen; without HOST on every interface"},
    {"state-dir", "DIR", kHow, "Keeps the jobs' rounds, commits and results over a restart"},
    {"insecure", "", kHow, "Allow an address that other hosts reach, without authentication"},
    {"lease", "SECONDS", kHow, "After this silence a node counts as lost (default 3)"},
    {"reconnect-timeout", "SECONDS", kHow,
     "How long a running job is kept together after a restart (default 60)"},
    {"help", "", kOther, "Print this page", 'h'},
    {"version", "", kOther, "Print the version"},
};

constexpr uint16_t kDefaultPort = 29400;
// Shorter ones end by themselves on a busy machine.
constexpr Duration kLeastLease = std::chrono::milliseconds(100);

struct Settings {
  Endpoint listen;
  rendezvous::RendezvousServerOptions server;
  bool insecure = false;
};

absl::StatusOr<Settings> Read(const CommandLine& line) {
  Settings settings;
  auto listen = line.values.find("listen");
  if (listen == line.values.end()) {
    return absl::InvalidArgumentError(
        "where to listen is missing; usage: muster rendezvous --listen 127.0.0.1:29400");
  }
  std::string text = listen->second;
  if (text.starts_with(':')) text = "0.0.0.0" + text;
  std::optional<Endpoint> endpoint = ParseEndpoint(text, kDefaultPort);
  if (!endpoint.has_value()) {
    return BadValue("--listen", listen->second, "HOST, HOST:PORT or :PORT");
  }
  settings.listen = *endpoint;
  bool is_everywhere = endpoint->host == "0.0.0.0" || endpoint->host == "::";
  settings.server.host = is_everywhere ? "" : endpoint->host;
  settings.server.port = endpoint->port;
  settings.insecure = line.values.contains("insecure");
  if (auto it = line.values.find("state-dir"); it != line.values.end()) {
    settings.server.state_dir = it->second;
    if (it->second.empty()) {
      return absl::InvalidArgumentError("--state-dir: give a directory, or leave the option out");
    }
  }
  const std::pair<std::string_view, Duration*> kDurations[] = {
      {"lease", &settings.server.job.lease},
      {"reconnect-timeout", &settings.server.job.reconnect_timeout}};
  for (const auto& [name, target] : kDurations) {
    auto it = line.values.find(name);
    if (it == line.values.end()) continue;
    absl::StatusOr<Duration> seconds = Seconds(Cat("--", name), it->second);
    if (!seconds.ok()) return seconds.status();
    if (target == &settings.server.job.lease && *seconds < kLeastLease) {
      return absl::InvalidArgumentError(
          Cat("--lease: \"", it->second, "\" is too short; give at least 0.1 seconds"));
    }
    *target = *seconds;
  }
  if (!line.rest.empty()) {
    return absl::InvalidArgumentError(
        Cat("unexpected word \"", line.rest.front(), "\"; `muster rendezvous` takes options only"));
  }
  return settings;
}

// Without authentication only this host may come in, unless the user says otherwise.
absl::Status CheckExposure(const Settings& settings) {
  if (settings.insecure) return absl::OkStatus();
  bool is_exposed = settings.server.host.empty();
  if (!is_exposed) {
    absl::StatusOr<std::vector<Address>> addresses = Resolve(settings.server.host);
    if (!addresses.ok()) return addresses.status();
    for (const Address& address : *addresses) is_exposed = is_exposed || !address.IsLoopback();
  }
  if (!is_exposed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Cat("--listen=", settings.listen.ToString(),
          " lets every host on the network control the jobs: there is no authentication; add "
          "--insecure if the network is trusted, or listen on 127.0.0.1"));
}

int Serve(const Settings& settings) {
  // Each node holds one connection: a shell's 1024 must not decide how many a job may have.
  agent::guardian::RaiseDescriptorLimit();
  SetUpLog(LogVolume::kEvents);
  constexpr int kTaken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  StopSignals signals(kTaken);
  std::promise<int> stopped;
  signals.Watch([&stopped, is_told = false](int number) mutable {
    if (!is_told && number != SIGUSR1 && number != SIGUSR2) {
      is_told = true;
      stopped.set_value(number);
    }
  });
  absl::StatusOr<std::unique_ptr<rendezvous::RendezvousServer>> server =
      rendezvous::RendezvousServer::Start(settings.server);
  if (server.status().code() == absl::StatusCode::kAlreadyExists) {
    std::string holder = HolderOfPort(settings.listen.port);
    Say(Cat("port ", settings.listen.port, " is in use by ",
            holder.empty() ? "another process" : holder, "; name another one with --listen"));
    return kExitUnavailable;
  }
  if (server.status().code() == absl::StatusCode::kFailedPrecondition) {
    Say(Cat("--state-dir: ", std::string(server.status().message())));
    return kExitFolder;
  }
  if (!server.ok()) {
    Say(Cat("can't listen at ", settings.listen.ToString(), ": ",
            std::string(server.status().message())));
    return server.status().code() == absl::StatusCode::kInvalidArgument ? kExitUsage
                                                                        : kExitUnavailable;
  }
  Endpoint bound = {.host = settings.listen.host, .port = (*server)->port()};
  Say(Cat("rendezvous ", kVersion, " listens at ", bound.ToString()));
  int number = stopped.get_future().get();
  // Jobs aren't ended: their agents wait for a rendezvous that comes back.
  Say(Cat("rendezvous stopped by ", SignalName(number)));
  (*server)->Shutdown();
  return 0;
}

}  // namespace

int RendezvousCommand(std::span<const std::string> words) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(kFlags, words);
  if (!line.ok()) {
    Say(std::string(line.status().message()));
    return kExitUsage;
  }
  if (line->values.contains("help")) {
    std::string page = HelpPage(
        "Runs the rendezvous alone, for many jobs, until it is stopped by a signal.\n\n"
        "Usage: muster rendezvous --listen [HOST]:PORT [options]\n",
        kFlags);
    return Print(page) ? 0 : 1;
  }
  if (line->values.contains("version")) return Print(Cat("muster ", kVersion, "\n")) ? 0 : 1;
  absl::StatusOr<Settings> settings = Read(*line);
  absl::Status status = settings.ok() ? CheckExposure(*settings) : settings.status();
  if (!status.ok()) {
    Say(std::string(status.message()));
    return kExitUsage;
  }
  return Serve(*settings);
}

}  // namespace muster::launcher
