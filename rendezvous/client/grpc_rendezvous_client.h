// RendezvousClient over gRPC. Every Connect() resolves the host anew, makes a fresh channel and
// tries at once: no backoff of gRPC's own stands between an agent and a rendezvous that is back.
// The caller waits between tries (base/backoff.h).
//
// How an attempt ends, as OnDisconnected says it:
//   InvalidArgument   the host doesn't resolve, or the rendezvous found a message malformed
//   Unavailable       "connection refused", unreachable, no answer in `connect_timeout`, or broken
//   Internal          something answers that doesn't speak gRPC
//   Unimplemented     another gRPC server answers
// Any other code is the rendezvous's own word.
//
// ProbeEndpoint() never blocks; its callback runs on a thread of its own, or at once where there is
// nothing to ask. One that is under way when the client ends isn't called back.
//
// Thread-safe. The destructor cancels whatever goes on, runs the callbacks that are owed (with
// Cancelled) and returns within 200 ms, also while a name is being resolved. It must not be called
// from a callback.
#ifndef MUSTER_RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
#define MUSTER_RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/instant.h"
#include "rendezvous/client/rendezvous_client.h"

namespace muster::rendezvous {

struct GrpcRendezvousClientOptions {
  // Where the rendezvous listens: an IP address or a name.
  std::string host{};
  uint16_t port = 0;
  // From the start of an attempt until the rendezvous has answered. One that 10,000 nodes reach at
  // once takes seconds to answer the last of them, and would never come to it if all gave up and
  // began anew before.
  Duration connect_timeout = std::chrono::seconds(10);
};

// `observer` must outlive the client.
std::unique_ptr<RendezvousClient> NewGrpcRendezvousClient(GrpcRendezvousClientOptions options,
                                                          SessionObserver* observer);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_GRPC_RENDEZVOUS_CLIENT_H_
