#include "launcher/drain_command.h"

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/command_line.h"
#include "launcher/endpoint.h"
#include "launcher/exit_codes.h"
#include "launcher/flag_value.h"
#include "launcher/say.h"
#include "launcher/text.h"
#include "rendezvous/client/admin_client.h"

namespace muster::launcher {
namespace {

constexpr char kOptions[] = "Options";

constexpr FlagSpec kFlags[] = {
    {"rdzv-endpoint", "HOST[:PORT]", kOptions, "The rendezvous to ask (default localhost:29400)"},
    {"rdzv-id", "ID", kOptions, "Leave this job alone, not all of the node's jobs"},
    {"wait", "", kOptions, "Come back when the node is gone (at most --timeout)"},
    {"timeout", "SECONDS", kOptions, "How long --wait waits (default 600, at most 3600)"},
    {"help", "", kOptions, "Print this page", 'h'},
};

constexpr uint16_t kDefaultPort = 29400;
constexpr std::chrono::seconds kPatience{5};
// The rendezvous answers then at the latest.
constexpr std::chrono::seconds kLongestWait{3600};

struct Order {
  Endpoint endpoint;
  rendezvous::AdminClient::DrainOrder drain;
};

absl::StatusOr<Order> Read(const CommandLine& line) {
  Order order;
  order.endpoint = {.host = "localhost", .port = kDefaultPort};
  if (auto it = line.values.find("rdzv-endpoint"); it != line.values.end()) {
    std::optional<Endpoint> endpoint = ParseEndpoint(it->second, kDefaultPort);
    if (!endpoint.has_value() || endpoint->port == 0) {
      return BadValue("--rdzv-endpoint", it->second, "HOST or HOST:PORT");
    }
    order.endpoint = *endpoint;
  }
  if (auto it = line.values.find("rdzv-id"); it != line.values.end()) {
    order.drain.run_id = it->second;
  }
  Duration timeout = std::chrono::seconds(600);
  if (auto it = line.values.find("timeout"); it != line.values.end()) {
    absl::StatusOr<Duration> given = Seconds("--timeout", it->second);
    if (!given.ok()) return given.status();
    if (*given <= Duration(0) || *given > kLongestWait) {
      return BadValue("--timeout", it->second, "seconds, more than 0 and at most 3600");
    }
    if (!line.values.contains("wait")) {
      return absl::InvalidArgumentError("--timeout says how long --wait waits; give --wait too");
    }
    timeout = *given;
  }
  if (line.values.contains("wait")) order.drain.wait = timeout;
  if (line.rest.size() != 1 || line.rest.front().empty()) {
    return absl::InvalidArgumentError(
        line.rest.size() > 1
            ? Cat("unexpected word \"", line.rest[1], "\" after the node \"", line.rest[0],
                  "\"; name one node: muster drain [options] NODE")
            : "no node was named; usage: muster drain [options] NODE (`muster status` lists them)");
  }
  order.drain.node = line.rest.front();
  return order;
}

// The exit code: whether it may be taken for gone.
int TellDone(const Order& order, const rendezvous::DrainReport& report) {
  const bool waits = order.drain.wait > Duration(0);
  // A host's name means all agents on it.
  const std::string node =
      Cat("node ", order.drain.node, report.agents > 1 ? Cat(" (", report.agents, " agents)") : "");
  // Also of one that was drained before.
  if (report.host_stays && (waits || report.agents == 0)) {
    Say(Cat("the workers of ", node,
            " have left, but its muster process must stay until the job ends, since it hosts the "
            "rendezvous: don't switch the node off while `muster status --rdzv-endpoint ",
            order.endpoint.ToString(), "` names it"));
    return 1;
  }
  std::string done = waits ? " has left" : " is to leave, as soon as its job lets it";
  if (report.host_stays) {
    done +=
        Cat("; its muster process stays until the job ends, since it hosts the rendezvous: "
            "don't switch the node off while `muster status --rdzv-endpoint ",
            order.endpoint.ToString(), "` names it");
  }
  Say(node + done);
  return 0;
}

int Ask(const Order& order) {
  rendezvous::AdminClient client(order.endpoint.host, order.endpoint.port);
  absl::StatusOr<rendezvous::DrainReport> told = client.Drain(order.drain, kPatience);
  if (told.ok()) return TellDone(order, *told);
  const std::string why(told.status().message());
  if (absl::IsNotFound(told.status()) || absl::IsResourceExhausted(told.status())) {
    Say(why);
    return 1;
  }
  if (absl::IsDeadlineExceeded(told.status())) {
    Say(Cat(why,
            "; the order stands: wait again, with a longer --timeout, or look at `muster "
            "status`"));
    return 1;
  }
  Say(Cat("no muster rendezvous answers at ", order.endpoint.ToString(), ": ", why,
          "; look at it, or name another one with --rdzv-endpoint",
          order.drain.wait > Duration(0) ? ", or ask again: an order that was given stands" : ""));
  return kExitUnavailable;
}

}  // namespace

int DrainCommand(std::span<const std::string> words) {
  absl::StatusOr<CommandLine> line = ParseWordsAndFlags(kFlags, words);
  if (line.ok() && line->values.contains("help")) {
    std::string page = HelpPage(
        "Lets a node leave its jobs: where their workers can save, after a checkpoint that all\n"
        "ranks agree on. The others go on without it, and its `muster run` ends with 75.\n\n"
        "Usage: muster drain [options] NODE\n\n"
        "NODE is a name or an address as `muster status` shows it; a host's name means all agents\n"
        "on it.\n\n"
        "Ends with 0, or with --wait once the node is gone; with 1 if there is no such node, if "
        "it\n"
        "is still here after --timeout, or if its `muster run` has to stay until the job ends, "
        "since\n"
        "it hosts the rendezvous; with 69 if no rendezvous answers.\n",
        kFlags);
    return Print(page) ? 0 : 1;
  }
  absl::StatusOr<Order> order = line.ok() ? Read(*line) : line.status();
  if (!order.ok()) {
    Say(std::string(order.status().message()));
    return kExitUsage;
  }
  return Ask(*order);
}

}  // namespace muster::launcher
