#include "rendezvous/server/status_convert.h"

#include "base/version.h"
#include "proto/session_convert.h"

namespace muster::rendezvous {
namespace {

template <class Id>
std::string IdBytes(const Id& id) {
  return std::string(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}

void SetNode(const NodeStatus& node, proto::NodeStatus* out) {
  out->set_node_name(node.node_name);
  out->set_address(node.address);
  out->set_incarnation(IdBytes(node.incarnation));
  if (node.group_rank) out->set_group_rank(node.group_rank->value);
  out->set_attached(node.attached);
  out->set_since_last_message_ns(node.since_last_message.count());
  out->set_set_aside(node.is_set_aside);
  out->set_set_aside_left_ns(node.set_aside_left.count());
  out->set_hosts_rendezvous(node.hosts_rendezvous);
  if (node.leaves_because) out->set_leaves_because(*node.leaves_because);
}

void SetJob(const JobStatus& job, proto::JobStatus* out) {
  out->set_run_id(job.run_id);
  out->set_state(JobStateName(job.state));
  *out->mutable_world() = ToProto(job.world);
  out->set_attempt(job.attempt);
  out->set_restarts_charged(job.restarts_charged);
  out->set_max_restarts(job.max_restarts);
  if (job.last_commit) *out->mutable_last_commit() = ToProto(*job.last_commit);
  for (const NodeStatus& node : job.nodes) SetNode(node, out->add_nodes());
  if (job.verdict) *out->mutable_verdict() = ToProto(*job.verdict);
  if (job.departed_host) out->set_departed_host(job.departed_host->node_name);
}

}  // namespace

proto::GetStatusReply StatusToProto(const std::vector<JobStatus>& jobs) {
  proto::GetStatusReply out;
  out.set_version(kVersion);
  for (const JobStatus& job : jobs) SetJob(job, out.add_jobs());
  return out;
}

proto::WatchEvent EventToProto(const WatchedEvent& event) {
  proto::WatchEvent out;
  out.set_run_id(event.run_id);
  out.set_round(event.round.value);
  out.set_wall_time_ms(event.wall_time_ms);
  out.set_text(event.text);
  out.set_state(event.state);
  return out;
}

}  // namespace muster::rendezvous
