// A rendezvous that listens on one port and serves many jobs: embedded in `muster run` on the node
// that hosts it, or alone as `muster rendezvous`. Start() opens the port and runs everything on
// threads of its own; the destructor is Shutdown(). Thread-safe.
//
//   auto server = RendezvousServer::Start({.host = "127.0.0.1", .port = 29500});
//   if (!server.ok()) ...                 // AlreadyExists: the port is taken; see client/probe.h
//   ... (*server)->port() ...
#ifndef MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_SERVER_H_
#define MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/instant.h"
#include "rendezvous/core/job_machine.h"

namespace muster::rendezvous {

class NonGrpcAcceptor;

struct RendezvousServerOptions {
  // Where to listen: an IP address or a name; empty means all interfaces (the static layout with
  // more than one node). A name that isn't "localhost" but is a loopback address on this machine
  // (Debian's 127.0.1.1) means all interfaces too: other nodes know the name by another address.
  std::string host{};
  // 0: any free port.
  uint16_t port = 0;
  // Given to every job. startup_quiet and highest_round are set by the server.
  JobOptions job{};
  // Nobody can have been there before (--standalone, is_new): a round may close at once.
  bool standalone = false;
  // Where (run id, world id, round) are kept over a restart; empty: nowhere.
  std::string state_dir{};
  // How long a finished job's result is kept for late joiners.
  Duration retention = std::chrono::minutes(10);
  // Takes connections that don't begin like gRPC; null: they are closed. Must outlive the server.
  NonGrpcAcceptor* non_grpc = nullptr;
  // Those connections belong to rounds of the job `non_grpc_job`. Called when one begins, before
  // any agent is told of it: what comes in from then on is of the new round. Takes milliseconds at
  // most. May be empty.
  std::function<void()> on_round{};
  std::string non_grpc_job{};
  // Must outlive the server.
  const Clock* clock = &SystemClock();
};

class RendezvousServer {
 public:
  // AlreadyExists: the port is in use (the socket is exclusive). InvalidArgument: the host doesn't
  // resolve, or isn't an address of this machine. FailedPrecondition: the state directory can't be
  // used. Unavailable: any other refusal of the system, in its words.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(
      const RendezvousServerOptions& options);
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  // The port that it listens on.
  uint16_t port() const;

  // The process that hosts this server was told to stop: every job ends with this reason and code,
  // and its agents are told.
  void HostStopping(const std::string& reason, int exit_code);
  // The agent of this process was refused: jobs that are short of nodes would wait for it in vain,
  // and end with this.
  void HostRefused(const std::string& reason, int exit_code);

  // For a host whose own agent has left: waits while any other agent is attached, then, if an agent
  // of a job is away for a moment and hasn't heard the verdict, at most `linger` longer. At once
  // where nobody else is there. Never longer than `most`. True: idle; false: `most` was reached.
  bool WaitUntilIdle(Duration most, Duration linger = std::chrono::seconds(5));

  // Ends all streams (agents see Unavailable and would re-attach), closes the port and joins the
  // threads; takes at most about a second. Jobs are not ended. May be called more than once.
  void Shutdown();

 private:
  class Parts;
  explicit RendezvousServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_SERVER_H_
