// The rendezvous' gRPC service: turns RPCs into calls of the loop and what the loop says into
// messages. Holds no rules. Each RPC is a reactor of the callback API that lives until gRPC is done
// with it; outgoing queues are bounded, and a reader that lets one fill up is cut off.
// Thread-safe, as gRPC requires. The loop must outlive the gRPC server that this is registered
// with.
#ifndef MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_SERVICE_H_
#define MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_SERVICE_H_

#include <memory>

#include "rendezvous/server/rendezvous_loop.h"

namespace grpc {
class Service;
}

namespace muster::rendezvous {

// `loop` must outlive every server that the service is registered with.
std::unique_ptr<grpc::Service> NewRendezvousService(RendezvousLoop* loop);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_SERVICE_H_
