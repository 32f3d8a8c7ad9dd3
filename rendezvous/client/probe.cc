#include "rendezvous/client/probe.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/status/status.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/channel.h"
#include "rendezvous/client/plain_connect.h"

namespace muster::rendezvous {
namespace {

// The kernel of a host that is there answers at once.
constexpr Duration kConnectPatience = std::chrono::milliseconds(200);

bool Listens(const std::string& target, uint16_t port) {
  for (const std::string& address : Addresses(target)) {
    if (PlainConnect(address, port, kConnectPatience) == ConnectAnswer::kAccepted) return true;
  }
  return false;
}

}  // namespace

ProbeResult Probe(const std::string& host, uint16_t port, Duration timeout) {
  // All interfaces: one of them is the loopback.
  const std::string asked = host.empty() ? "127.0.0.1" : host;
  const std::string endpoint = EndpointText(asked, port);
  absl::StatusOr<std::string> target = ResolveTarget(asked, port);
  if (!target.ok()) return {ProbeAnswer::kNobody, std::string(target.status().message())};
  auto stub = proto::Rendezvous::NewStub(MakeChannel(*target, timeout));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
  proto::GetStatusRequest request;
  request.set_run_id("");
  proto::GetStatusReply reply;
  grpc::Status status = stub->GetStatus(&context, request, &reply);
  if (status.ok() && !reply.version().empty()) return {ProbeAnswer::kMuster, reply.version()};
  absl::Status why = ExplainConnectFailure(status, endpoint);
  std::string detail(why.message());
  // Nothing was answered, or something that a rendezvous wouldn't say.
  if (!absl::IsUnavailable(why)) return {ProbeAnswer::kSomethingElse, detail};
  return {Listens(*target, port) ? ProbeAnswer::kSilent : ProbeAnswer::kNobody, detail};
}

}  // namespace muster::rendezvous
