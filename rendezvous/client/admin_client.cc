#include "rendezvous/client/admin_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/channel.h"

namespace muster::rendezvous {
namespace {

// A rendezvous that stands still, or whose host is cut off, is found out within 15 s. It permits
// pings that are a second apart (rendezvous_server.cc).
constexpr Keepalive kKeepalive = {.silence = std::chrono::seconds(10),
                                  .patience = std::chrono::seconds(5)};

JobReport ReadJob(const proto::JobStatus& in) {
  JobReport out;
  out.run_id = in.run_id();
  out.state = in.state();
  out.round = in.world().round();
  out.attempt = in.attempt();
  out.restarts_charged = in.restarts_charged();
  out.max_restarts = in.max_restarts();
  if (in.has_last_commit()) out.committed_step = in.last_commit().step();
  if (in.has_verdict()) out.exit_code = in.verdict().exit_code();
  if (in.has_departed_host()) out.departed_host = in.departed_host();
  for (const proto::NodeStatus& node : in.nodes()) {
    NodeReport& report = out.nodes.emplace_back();
    report.node_name = node.node_name();
    report.address = node.address();
    if (node.has_group_rank()) report.group_rank = node.group_rank();
    report.attached = node.attached();
    report.is_set_aside = node.set_aside();
    report.set_aside_left = Duration(node.set_aside_left_ns());
    report.hosts_rendezvous = node.hosts_rendezvous();
    if (node.has_leaves_because()) report.leaves_because = node.leaves_because();
    report.since_last_message = Duration(node.since_last_message_ns());
  }
  return out;
}

std::string Seconds(Duration duration) {
  return absl::StrCat(std::chrono::duration<double>(duration).count(), " s");
}

std::chrono::system_clock::time_point DeadlineIn(Duration patience) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(patience);
}

}  // namespace

class AdminClient::Wire {
 public:
  Wire(std::string host, uint16_t port) : host_(std::move(host)), port_(port) {}

  // A stub on a channel of its own, connected at the first call.
  absl::StatusOr<std::unique_ptr<proto::Rendezvous::Stub>> Stub(Duration connect_timeout) const {
    absl::StatusOr<std::string> target = ResolveTarget(host_, port_);
    if (!target.ok()) return target.status();
    return proto::Rendezvous::NewStub(MakeChannel(*target, connect_timeout, kKeepalive));
  }

  // `waited`: for how long the call was made.
  absl::Status Explain(const grpc::Status& status, Duration waited) const {
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
      return absl::NotFoundError(status.error_message());
    }
    if (IsSilence(status)) waited = kKeepalive.silence + kKeepalive.patience;
    if (IsSilence(status) || IsTimeout(status)) {
      return absl::UnavailableError(absl::StrCat(
          "no answer came within ", Seconds(waited),
          ", so its process may be stopped (SIGSTOP) or overloaded, or its host cut off"));
    }
    return ExplainConnectFailure(status, EndpointText(host_, port_));
  }

 private:
  const std::string host_;
  const uint16_t port_;
};

AdminClient::AdminClient(std::string host, uint16_t port)
    : wire_(std::make_unique<Wire>(std::move(host), port)) {}

AdminClient::~AdminClient() = default;

absl::StatusOr<std::vector<JobReport>> AdminClient::Jobs(const std::optional<std::string>& run_id,
                                                         Duration patience) {
  auto stub = wire_->Stub(patience);
  if (!stub.ok()) return stub.status();
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(patience));
  proto::GetStatusRequest request;
  if (run_id) request.set_run_id(*run_id);
  proto::GetStatusReply reply;
  grpc::Status status = (*stub)->GetStatus(&context, request, &reply);
  if (!status.ok()) return wire_->Explain(status, patience);
  std::vector<JobReport> jobs;
  for (const proto::JobStatus& job : reply.jobs()) jobs.push_back(ReadJob(job));
  return jobs;
}

absl::StatusOr<DrainReport> AdminClient::Drain(const DrainOrder& order, Duration patience) {
  auto stub = wire_->Stub(patience);
  if (!stub.ok()) return stub.status();
  grpc::ClientContext context;
  const auto deadline = DeadlineIn(patience + order.wait);
  context.set_deadline(deadline);
  proto::DrainRequest request;
  if (order.run_id) request.set_run_id(*order.run_id);
  request.set_node(order.node);
  // Rounded up: no wait would be another order.
  request.set_wait_ms(std::chrono::ceil<std::chrono::milliseconds>(order.wait).count());
  proto::DrainReply reply;
  grpc::Status status = (*stub)->Drain(&context, request, &reply);
  // The rendezvous says so; our own deadline, which is later (but for gRPC's rounding), says that
  // it doesn't answer.
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && order.wait > Duration(0) &&
      std::chrono::system_clock::now() < deadline - patience / 10) {
    return absl::DeadlineExceededError(status.error_message());
  }
  if (!status.ok()) {
    // No connection at all is given up on sooner.
    const bool is_deadline = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    return wire_->Explain(status, is_deadline ? patience + order.wait : patience);
  }
  return DrainReport{.agents = reply.agents(), .host_stays = reply.host_stays()};
}

absl::Status AdminClient::CannotStart(const FailedStart& failed, Duration patience) {
  auto stub = wire_->Stub(patience);
  if (!stub.ok()) return stub.status();
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(patience));
  proto::CannotStartRequest request;
  request.set_run_id(failed.run_id);
  request.set_node_name(failed.node_name);
  request.set_reason(failed.reason);
  proto::CannotStartReply reply;
  grpc::Status status = (*stub)->CannotStart(&context, request, &reply);
  return status.ok() ? absl::OkStatus() : wire_->Explain(status, patience);
}

absl::Status AdminClient::Watch(const std::optional<std::string>& run_id,
                                const BegunCallback& on_begun, const EventCallback& on_event) {
  auto stub = wire_->Stub(std::chrono::seconds(3));
  if (!stub.ok()) return stub.status();
  grpc::ClientContext context;
  proto::WatchRequest request;
  if (run_id) request.set_run_id(*run_id);
  auto reader = (*stub)->Watch(&context, request);
  reader->WaitForInitialMetadata();
  bool goes_on = on_begun();
  proto::WatchEvent event;
  while (goes_on && reader->Read(&event)) {
    goes_on = on_event({.run_id = event.run_id(), .text = event.text(), .state = event.state()});
  }
  if (!goes_on) context.TryCancel();
  grpc::Status status = reader->Finish();
  return status.ok() || !goes_on ? absl::OkStatus() : wire_->Explain(status, Duration(0));
}

}  // namespace muster::rendezvous
