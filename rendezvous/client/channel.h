// Channels to a rendezvous and what their failures mean: shared by the client and the probe.
// Functions; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CLIENT_CHANNEL_H_
#define MUSTER_RENDEZVOUS_CLIENT_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/instant.h"

namespace muster::rendezvous {

// "host:port" as people write it; an IPv6 address in brackets.
std::string EndpointText(const std::string& host, uint16_t port);

// Whether ResolveTarget() answers without asking anybody.
bool IsNumericHost(const std::string& host);

// gRPC's name for all addresses of a host. Blocks on the system's resolver unless the host is
// numeric. InvalidArgument: no such name. Unavailable: the resolver couldn't tell now.
absl::StatusOr<std::string> ResolveTarget(const std::string& host, uint16_t port);

// The addresses of such a target, in digits.
std::vector<std::string> Addresses(const std::string& target);
// The address of a target that is one address alone; empty otherwise.
std::string SingleAddress(const std::string& target);

// When a connection on which a call waits is given up, though nothing tells of its end.
struct Keepalive {
  // After so long without a byte the other side is asked for a sign of life.
  Duration silence;
  // Which must come within this.
  Duration patience;
};

// A channel of its own connection: no HTTP proxy, nothing remembered of failures that earlier
// channels had. Without a `keepalive` no pings: agents have their leases.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target, Duration connect_timeout,
                                           const std::optional<Keepalive>& keepalive = {});

// Whether the connection was given up since no sign of life came.
bool IsSilence(const grpc::Status& status);

// Whether nobody answered in time: by the call's deadline, or by gRPC's own limit on its first
// exchange, which comes first as often as not.
bool IsTimeout(const grpc::Status& status);

// Says in one sentence why an RPC failed before a rendezvous had answered it. Codes as in
// grpc_rendezvous_client.h.
absl::Status ExplainConnectFailure(const grpc::Status& status, const std::string& endpoint);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_CHANNEL_H_
