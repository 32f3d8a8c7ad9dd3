// Carries out the plan's first half: finds out whether this node hosts the rendezvous, starts it if
// so, and tells where this node's agent connects and at which address others reach it. Blocks on
// name resolution and on asking who holds a port; needs no network otherwise. Used once at start,
// by one thread.
#ifndef MUSTER_LAUNCHER_MEETING_PLACE_H_
#define MUSTER_LAUNCHER_MEETING_PLACE_H_

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "base/instant.h"
#include "launcher/endpoint.h"
#include "launcher/launch_plan.h"
#include "launcher/shared_store.h"
#include "rendezvous/server/rendezvous_server.h"

namespace muster::launcher {

struct MeetingPlace {
  // The rendezvous of this node; null where another one hosts it.
  std::unique_ptr<rendezvous::RendezvousServer> server;
  // Where this node's agent connects.
  Endpoint connect_to;
  // How messages call the rendezvous.
  std::string name;
  // Where other nodes reach this one.
  std::string address;
  // The same as it is now, where nobody has said what it shall be: empty if no way leads to the
  // rendezvous at the moment. Doesn't block; null where the address is fixed.
  std::function<std::string()> find_address;
};

struct MeetingFailure {
  int exit_code = 0;
  // One sentence that names the endpoint and what to do.
  std::string text;
};

struct MeetingOptions {
  // For the rendezvous, if this node hosts it: after this silence a node counts as lost, and how
  // long a job without contact is kept together.
  Duration lease = std::chrono::seconds(3);
  // How long nodes that leave wait for a checkpoint, where this node hosts the rendezvous.
  Duration checkpoint_patience = std::chrono::seconds(30);
  Duration reconnect_timeout = std::chrono::seconds(60);
  // How long a name that doesn't resolve is tried again: where pods start in any order, a peer's
  // name comes into being later.
  Duration patience = std::chrono::seconds(600);
  // Serves PyTorch's store where the plan has it share the rendezvous' port; null: nobody does.
  // Must outlive the rendezvous.
  SharedStore* store = nullptr;
  // This node is one of --hosts, to which no --local-addr can be given.
  bool is_one_of_hosts = false;
  // Shows one line to the user.
  std::function<void(const std::string&)> say;
};

std::variant<MeetingPlace, MeetingFailure> FindMeetingPlace(const LaunchPlan& plan,
                                                            const MeetingOptions& options);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_MEETING_PLACE_H_
