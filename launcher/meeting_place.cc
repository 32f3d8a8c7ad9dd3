#include "launcher/meeting_place.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "launcher/addresses.h"
#include "launcher/exit_codes.h"
#include "launcher/machine_facts.h"
#include "launcher/port_holder.h"
#include "launcher/text.h"
#include "rendezvous/client/probe.h"

namespace muster::launcher {
namespace {

using rendezvous::Probe;
using rendezvous::ProbeAnswer;
using rendezvous::ProbeResult;
using rendezvous::RendezvousServer;
using std::chrono::milliseconds;
using Outcome = std::variant<MeetingPlace, MeetingFailure>;

constexpr char kLoopback[] = "127.0.0.1";
// Another host that has bound the port but doesn't listen yet, or that is just going away.
constexpr int kListenTries = 40;
constexpr milliseconds kListenPause{50};
constexpr milliseconds kResolvePause{250};
constexpr milliseconds kQuickLook{250};

int64_t Seconds(Duration duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

class Finder {
 public:
  Finder(const LaunchPlan& plan, const MeetingOptions& options) : plan_(plan), options_(options) {}

  Outcome Find() {
    if (plan_.layout == Layout::kStandalone) return Host();
    if (plan_.layout == Layout::kStatic) return FindStatic();
    return FindElastic();
  }

 private:
  Outcome FindStatic() {
    if (plan_.hosting == Hosting::kNever) return Join();
    // Workers of this node look for rank 0 by that name, too.
    std::optional<MeetingFailure> failure = ResolveEndpoint();
    if (failure.has_value()) return *std::move(failure);
    if (plan_.terms.max_nodes == 1) return Host();
    // Two nodes may both think they are node rank 0. The one whose address --master-addr isn't
    // finds the other one there; the rendezvous then tells them apart.
    if (std::ranges::none_of(resolved_, IsOwnAddress)) {
      ProbeAnswer answer = Probe(plan_.endpoint.host, plan_.endpoint.port).answer;
      if (answer == ProbeAnswer::kMuster || answer == ProbeAnswer::kSilent) return Join();
      options_.say(Cat("--master-addr=", plan_.endpoint.host, " (", ListOf(resolved_),
                       ") is no address of this node (", ListOf(OutwardAddresses()),
                       "), which hosts the rendezvous as node rank 0; listening on all of them"));
    }
    return Host();
  }

  Outcome FindElastic() {
    if (plan_.hosting == Hosting::kNever) return Join();
    if (plan_.hosting == Hosting::kAlways) return Host();
    std::optional<MeetingFailure> failure = ResolveEndpoint();
    if (failure.has_value()) return *failure;
    if (std::ranges::any_of(resolved_, IsOwnAddress)) return Host();
    // A name that stands for nobody who will serve is the commonest reason to wait in vain.
    if (Probe(plan_.endpoint.host, plan_.endpoint.port, kQuickLook).answer !=
        ProbeAnswer::kMuster) {
      options_.say(Cat("no rendezvous answers at ", plan_.endpoint.ToString(),
                       " yet: ", ListOf(resolved_), " is no address of this node (",
                       ListOf(OutwardAddresses()), "), so the node that has it must do so"));
    }
    return Join();
  }

  // By the flag that a user would look for.
  std::string NamedEndpoint() const {
    if (plan_.layout == Layout::kStatic) {
      return Cat("the rendezvous at --master-addr=", plan_.endpoint.host);
    }
    return Cat("the rendezvous ", plan_.endpoint.ToString());
  }

  // Fills resolved_. A name that isn't known yet is tried again.
  std::optional<MeetingFailure> ResolveEndpoint() {
    if (!resolved_.empty()) return std::nullopt;
    Instant end = SystemClock().Now() + options_.patience;
    bool has_said = false;
    while (true) {
      absl::StatusOr<std::vector<Address>> resolved = Resolve(plan_.endpoint.host);
      if (resolved.ok()) {
        resolved_ = *std::move(resolved);
        return std::nullopt;
      }
      std::string why(resolved.status().message());
      if (SystemClock().Now() >= end) {
        return MeetingFailure{kExitUnavailable,
                              Cat(NamedEndpoint(), " can't be reached: the name ", why,
                                  "; check its spelling and the name service of this node")};
      }
      if (!has_said) {
        options_.say(Cat(NamedEndpoint(), " can't be reached yet: the name ", why,
                         "; trying again for ", Seconds(options_.patience), " s (join_timeout)"));
      }
      has_said = true;
      std::this_thread::sleep_for(kResolvePause);
    }
  }

  Outcome Host() {
    Endpoint local = {.host = plan_.listen_host.empty() ? kLoopback : plan_.listen_host,
                      .port = plan_.endpoint.port};
    rendezvous::RendezvousServerOptions server_options;
    server_options.host = plan_.listen_host;
    server_options.port = plan_.endpoint.port;
    server_options.job.lease = options_.lease;
    server_options.job.reconnect_timeout = options_.reconnect_timeout;
    server_options.job.checkpoint_patience = options_.checkpoint_patience;
    if (plan_.shares_port_with_store && options_.store != nullptr) {
      server_options.non_grpc = options_.store;
      server_options.non_grpc_job = plan_.terms.run_id;
      server_options.on_round = [store = options_.store] { store->BeginRound(); };
    }
    // Nobody can have been there before on a port that the kernel has just chosen.
    server_options.standalone = plan_.endpoint.port == 0 || plan_.is_new;
    Instant end = SystemClock().Now() + options_.patience;
    int tries_in_vain = 0;
    bool has_said = false;
    while (true) {
      absl::StatusOr<std::unique_ptr<RendezvousServer>> server =
          RendezvousServer::Start(server_options);
      if (server.ok()) return Hosted(*std::move(server), local);
      if (server.status().code() != absl::StatusCode::kAlreadyExists) {
        bool is_ours = server.status().code() == absl::StatusCode::kInvalidArgument;
        return MeetingFailure{
            is_ours ? kExitUsage : kExitUnavailable,
            Cat("this node can't host the rendezvous at ", plan_.endpoint.ToString(), ": ",
                std::string(server.status().message()))};
      }
      if (!plan_.joins_if_port_is_taken) return PortTaken("");
      ProbeResult probe = Probe(local.host, local.port);
      if (probe.answer == ProbeAnswer::kMuster) return Join();
      tries_in_vain = probe.answer == ProbeAnswer::kNobody ? tries_in_vain + 1 : 0;
      bool is_over = probe.answer == ProbeAnswer::kSilent && SystemClock().Now() >= end;
      if (probe.answer == ProbeAnswer::kSomethingElse || tries_in_vain > kListenTries || is_over) {
        return PortTaken(probe.detail);
      }
      if (probe.answer == ProbeAnswer::kSilent && !std::exchange(has_said, true)) {
        options_.say(Cat("port ", local.port, " of this node is held by ", PortHolder(),
                         ", which accepts connections but doesn't answer yet; waiting for it for ",
                         Seconds(options_.patience), " s (join_timeout)"));
      }
      std::this_thread::sleep_for(kListenPause);
    }
  }

  std::string PortHolder() const {
    std::string holder = HolderOfPort(plan_.endpoint.port);
    return holder.empty() ? "another process" : holder;
  }

  MeetingFailure PortTaken(const std::string& detail) const {
    std::string text =
        Cat("port ", plan_.endpoint.port, " of this node is in use by ", PortHolder());
    if (!detail.empty()) text += Cat(", which is no muster rendezvous (", detail, ")");
    text += plan_.layout == Layout::kElastic ? "; name another port in --rdzv-endpoint on all nodes"
                                             : "; name another one with --master-port";
    if (plan_.terms.max_nodes == 1) text += ", or leave it out: a free one is chosen then";
    return {kExitUnavailable, text};
  }

  Outcome Hosted(std::unique_ptr<RendezvousServer> server, Endpoint local) {
    local.port = server->port();
    MeetingPlace place;
    place.connect_to = local;
    place.name = plan_.endpoint.port == 0 ? local.ToString() : plan_.endpoint.ToString();
    place.server = std::move(server);
    if (!plan_.address.empty()) {
      place.address = plan_.address;
      return place;
    }
    std::optional<MeetingFailure> failure = ResolveEndpoint();
    if (failure.has_value()) return *std::move(failure);
    place.address = OwnAddress();
    bool is_meant = plan_.endpoint.host == "localhost" || plan_.endpoint.host == place.address;
    if (plan_.terms.max_nodes > 1 && resolved_.front().IsLoopback() && !is_meant) {
      // Debian's /etc/hosts maps a host's own name to 127.0.1.1, where no other node could come.
      std::vector<Address> outward = OutwardAddresses();
      if (!outward.empty()) place.address = outward.front().ToString();
      options_.say(Cat(plan_.endpoint.host, " stands for ", ListOf(resolved_),
                       " on this node; other nodes are told ", place.address, " instead (",
                       options_.is_one_of_hosts ? "--master-addr" : "--local-addr",
                       " names another address)"));
    }
    return place;
  }

  Outcome Join() {
    MeetingPlace place;
    place.connect_to = plan_.endpoint;
    place.name = plan_.endpoint.ToString();
    std::optional<MeetingFailure> failure = ResolveEndpoint();
    if (failure.has_value()) return *std::move(failure);
    if (!plan_.address.empty()) {
      if ((failure = CheckGivenAddress())) return *std::move(failure);
      place.address = plan_.address;
      return place;
    }
    place.address = OwnAddress();
    // It may change while the job runs; the way to the rendezvous tells again.
    place.find_address = [resolved = resolved_] {
      for (const Address& address : resolved) {
        absl::StatusOr<Address> end = LocalEndTowards(address);
        if (end.ok()) return end->ToString();
      }
      return std::string();
    };
    return place;
  }

  // A loopback address is nobody's from another host, such as the one that hosts the rendezvous.
  std::optional<MeetingFailure> CheckGivenAddress() const {
    absl::StatusOr<std::vector<Address>> given = Resolve(plan_.address);
    absl::StatusOr<std::vector<Address>> there = Resolve(plan_.endpoint.host);
    bool is_wrong = given.ok() && there.ok() && std::ranges::all_of(*given, &Address::IsLoopback) &&
                    std::ranges::none_of(*there, IsOwnAddress);
    if (!is_wrong) return std::nullopt;
    return MeetingFailure{
        kExitUsage,
        Cat("--local-addr=", plan_.address, " (", ListOf(*given),
            ") can't be reached from other nodes, and the rendezvous ", plan_.endpoint.ToString(),
            " is on another one; name an address of this node (", ListOf(OutwardAddresses()),
            ") or leave it out: the way to the rendezvous tells")};
  }

  // The local end of the way to the rendezvous: it has proved which way is out.
  std::string OwnAddress() const {
    for (const Address& address : resolved_) {
      // `localhost` stands for both families; IPv4 is what every program understands.
      bool is_v6_loopback = address.IsLoopback() && address.storage.ss_family == AF_INET6;
      if (is_v6_loopback && resolved_.size() > 1) continue;
      if (IsOwnAddress(address)) return address.ToString();
      absl::StatusOr<Address> end = LocalEndTowards(address);
      if (end.ok()) return end->ToString();
    }
    std::vector<Address> outward = OutwardAddresses();
    return outward.empty() ? HostName() : outward.front().ToString();
  }

  const LaunchPlan& plan_;
  const MeetingOptions& options_;
  std::vector<Address> resolved_;
};

}  // namespace

std::variant<MeetingPlace, MeetingFailure> FindMeetingPlace(const LaunchPlan& plan,
                                                            const MeetingOptions& options) {
  return Finder(plan, options).Find();
}

}  // namespace muster::launcher
