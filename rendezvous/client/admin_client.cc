#include "rendezvous/client/admin_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/channel.h"

namespace muster::rendezvous {
namespace {

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
  for (const proto::NodeStatus& node : in.nodes()) {
    NodeReport& report = out.nodes.emplace_back();
    report.node_name = node.node_name();
    report.address = node.address();
    if (node.has_group_rank()) report.group_rank = node.group_rank();
    report.attached = node.attached();
    report.is_set_aside = node.set_aside();
    report.since_last_message = Duration(node.since_last_message_ns());
  }
  return out;
}

}  // namespace

class AdminClient::Wire {
 public:
  Wire(std::string host, uint16_t port) : host_(std::move(host)), port_(port) {}

  // A stub on a channel of its own, connected at the first call.
  absl::StatusOr<std::unique_ptr<proto::Rendezvous::Stub>> Stub(Duration connect_timeout) const {
    absl::StatusOr<std::string> target = ResolveTarget(host_, port_);
    if (!target.ok()) return target.status();
    return proto::Rendezvous::NewStub(MakeChannel(*target, connect_timeout));
  }

  absl::Status Explain(const grpc::Status& status) const {
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
      return absl::NotFoundError(status.error_message());
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
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(patience));
  proto::GetStatusRequest request;
  if (run_id) request.set_run_id(*run_id);
  proto::GetStatusReply reply;
  grpc::Status status = (*stub)->GetStatus(&context, request, &reply);
  if (!status.ok()) return wire_->Explain(status);
  std::vector<JobReport> jobs;
  for (const proto::JobStatus& job : reply.jobs()) jobs.push_back(ReadJob(job));
  return jobs;
}

absl::StatusOr<int> AdminClient::Drain(const DrainOrder& order, Duration patience) {
  auto stub = wire_->Stub(patience);
  if (!stub.ok()) return stub.status();
  grpc::ClientContext context;
  const auto deadline =
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(patience + order.wait);
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
  if (!status.ok()) return wire_->Explain(status);
  return reply.agents();
}

absl::Status AdminClient::Watch(const std::optional<std::string>& run_id,
                                const EventCallback& on_event) {
  auto stub = wire_->Stub(std::chrono::seconds(3));
  if (!stub.ok()) return stub.status();
  grpc::ClientContext context;
  proto::WatchRequest request;
  if (run_id) request.set_run_id(*run_id);
  auto reader = (*stub)->Watch(&context, request);
  proto::WatchEvent event;
  bool goes_on = true;
  while (goes_on && reader->Read(&event)) goes_on = on_event(event.run_id(), event.text());
  if (!goes_on) context.TryCancel();
  grpc::Status status = reader->Finish();
  return status.ok() || !goes_on ? absl::OkStatus() : wire_->Explain(status);
}

}  // namespace muster::rendezvous
