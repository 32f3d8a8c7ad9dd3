#include "proto/session_convert.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "proto/field_reader.h"
#include "proto/job_convert.h"

namespace muster {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// ---- structs -> protobuf -------------------------------------------------------------------

proto::RunningWorld RunningToProto(const RunningWorld& running) {
  proto::RunningWorld out;
  *out.mutable_world() = ToProto(running.world);
  out.set_group_rank(running.group_rank.value);
  out.set_group_world_size(running.group_world_size);
  out.set_first_rank(running.first_rank.value);
  out.set_world_size(running.world_size);
  out.set_restarts_charged(running.restarts_charged);
  if (running.last_commit) *out.mutable_last_commit() = ToProto(*running.last_commit);
  out.set_succeeded(running.succeeded);
  out.set_worker_succeeded(running.worker_succeeded);
  return out;
}

proto::Attach AttachToProto(const Attach& attach) {
  proto::Attach out;
  out.set_incarnation(IdBytes(attach.incarnation));
  out.set_node_name(attach.node_name);
  out.set_address(attach.address);
  out.set_worker_count(attach.worker_count);
  if (attach.node_rank) out.set_node_rank(*attach.node_rank);
  *out.mutable_terms() = ToProto(attach.terms);
  out.set_candidate_port(attach.candidate_port);
  if (attach.running) *out.mutable_running() = RunningToProto(*attach.running);
  out.set_highest_round(attach.highest_round.value);
  out.set_restarts_charged(attach.restarts_charged);
  if (attach.last_commit) *out.mutable_last_commit() = ToProto(*attach.last_commit);
  if (attach.round_elsewhere.value > 0) out.set_round_elsewhere(attach.round_elsewhere.value);
  out.set_was_attached(attach.was_attached);
  out.set_is_drained(attach.is_drained);
  out.set_hosts_rendezvous(attach.hosts_rendezvous);
  *out.mutable_facts() = ToProto(attach.facts);
  return out;
}

proto::StartRound StartToProto(const StartRound& start) {
  proto::StartRound out;
  *out.mutable_world() = ToProto(start.world);
  out.set_key(IdBytes(start.key));
  out.set_group_rank(start.group_rank.value);
  out.set_group_world_size(start.group_world_size);
  out.set_first_rank(start.first_rank.value);
  out.set_world_size(start.world_size);
  out.set_master_address(start.master_address);
  out.set_master_port(start.master_port);
  out.set_attempt(start.attempt);
  out.set_restarts_charged(start.restarts_charged);
  if (start.resume) *out.mutable_resume() = ToProto(*start.resume);
  return out;
}

// World and commit, which three of the messages consist of.
template <class Proto, class Struct>
void SetWorldAndCommit(Proto* out, const Struct& in) {
  *out->mutable_world() = ToProto(in.world);
  *out->mutable_commit() = ToProto(in.commit);
}

// World and step, which the messages of an agreed checkpoint consist of.
template <class Proto, class Struct>
void SetWorldAndStep(Proto* out, const Struct& in) {
  *out->mutable_world() = ToProto(in.world);
  out->set_step(in.step);
}

// ---- protobuf -> structs -------------------------------------------------------------------

// The four numbers of a node's place in a world.
template <class Struct, class Proto>
void ReadPlace(FieldReader& r, const Proto& in, Struct* out) {
  out->group_world_size = r.Count(in.group_world_size(), 1, "group_world_size");
  out->world_size = r.Count(in.world_size(), 1, "world_size");
  out->group_rank = GroupRank(r.Count(in.group_rank(), 0, "group_rank"));
  out->first_rank = Rank(r.Count(in.first_rank(), 0, "first_rank"));
  r.Need(out->group_rank.value < out->group_world_size, "group_rank isn't below group_world_size");
  r.Need(out->first_rank.value < out->world_size, "first_rank isn't below world_size");
  out->restarts_charged = in.restarts_charged();
  r.Need(out->restarts_charged >= 0, "restarts_charged is negative");
}

RunningWorld ReadRunning(FieldReader& r, const proto::RunningWorld& in) {
  RunningWorld out;
  out.world = r.WorldOf(in);
  r.Need(!out.world.id.IsNone() && out.world.round.value > 0, "running.world names no world");
  ReadPlace(r, in, &out);
  if (in.has_last_commit()) out.last_commit = r.ReadCommit(in.last_commit());
  out.succeeded = in.succeeded();
  out.worker_succeeded = in.worker_succeeded();
  return out;
}

Attach ReadAttach(FieldReader& r, const proto::Attach& in) {
  r.Need(in.has_terms(), "attach.terms is missing");
  Attach out;
  out.incarnation = r.RequiredId<Incarnation>(in.incarnation(), "attach.incarnation");
  out.node_name = r.Text(in.node_name(), kMaxName, "attach.node_name");
  out.address = r.Text(in.address(), kMaxName, "attach.address");
  out.worker_count = r.Count(in.worker_count(), 1, "attach.worker_count");
  if (in.has_node_rank()) out.node_rank = r.Count(in.node_rank(), 0, "attach.node_rank");
  out.terms = ReadTerms(r, in.terms());
  out.candidate_port = r.Port(in.candidate_port(), "attach.candidate_port");
  if (in.has_running()) out.running = ReadRunning(r, in.running());
  out.highest_round = r.Round(in.highest_round(), "attach.highest_round");
  out.restarts_charged = in.restarts_charged();
  r.Need(out.restarts_charged >= 0, "attach.restarts_charged is negative");
  if (in.has_last_commit()) out.last_commit = r.ReadCommit(in.last_commit());
  out.round_elsewhere = r.Round(in.round_elsewhere(), "attach.round_elsewhere");
  out.was_attached = in.was_attached();
  out.is_drained = in.is_drained();
  out.hosts_rendezvous = in.hosts_rendezvous();
  if (in.has_facts()) out.facts = ReadFacts(r, in.facts());
  return out;
}

StartRound ReadStart(FieldReader& r, const proto::StartRound& in) {
  StartRound out;
  out.world = r.WorldOf(in);
  out.key = r.RequiredId<RoundKey>(in.key(), "start_round.key");
  ReadPlace(r, in, &out);
  out.master_address = r.Text(in.master_address(), kMaxName, "start_round.master_address");
  out.master_port = r.Port(in.master_port(), "start_round.master_port");
  out.attempt = in.attempt();
  r.Need(out.attempt >= 0, "start_round.attempt is negative");
  if (in.has_resume()) out.resume = r.ReadCommit(in.resume());
  return out;
}

StopRound ReadStop(FieldReader& r, const proto::StopRound& in) {
  r.Need(
      in.cause() >= proto::StopRound::WORKER_FAILED && in.cause() <= proto::StopRound::SUPERSEDED,
      "stop_round.cause is unknown");
  StopRound out;
  out.world = r.WorldOf(in);
  out.cause = static_cast<StopCause>(in.cause());
  out.reason = r.Text(in.reason(), kMaxText, "stop_round.reason");
  out.culprit = Rank(r.Count(in.culprit(), -1, "stop_round.culprit"));
  return out;
}

Refused ReadRefused(FieldReader& r, const proto::Refused& in) {
  r.Need(in.code() >= proto::Refused::DISAGREES && in.code() <= proto::Refused::NOT_AUTHORISED,
         "refused.code is unknown");
  return {static_cast<RefusalCode>(in.code()), r.Text(in.message(), kMaxText, "refused.message")};
}

WorkerFailed ReadWorkerFailed(FieldReader& r, const proto::WorkerFailed& in) {
  r.Need(in.has_failure(), "failure is missing");
  return {r.WorldOf(in), ReadFailure(r, in.failure())};
}

Attached ReadAttached(FieldReader& r, const proto::Attached& in) {
  r.Need(in.lease_ns() > 0, "attached.lease_ns is missing");
  return {r.Span(in.lease_ns(), "attached.lease_ns"),
          r.Span(in.reconnect_timeout_ns(), "attached.reconnect_timeout_ns")};
}

JobEnded ReadJobEnded(FieldReader& r, const proto::JobEnded& in) {
  r.Need(in.has_verdict(), "verdict is missing");
  return {ReadVerdict(r, in.verdict())};
}

template <class Struct, class Proto>
Struct ReadWorldAndStep(FieldReader& r, const Proto& in) {
  r.Need(in.step() >= 0, "step is negative");
  return {r.WorldOf(in), in.step()};
}

AgentMessage ReadAgentMessage(FieldReader& r, const proto::AgentMessage& in) {
  switch (in.message_case()) {
    case proto::AgentMessage::kAttach:
      return ReadAttach(r, in.attach());
    case proto::AgentMessage::kHeartbeat:
      return Heartbeat{in.heartbeat().sequence(),
                       r.LastStep(in.heartbeat().steps_done(), "heartbeat.steps_done"),
                       in.heartbeat().can_save()};
    case proto::AgentMessage::kWorkerFailed:
      return ReadWorkerFailed(r, in.worker_failed());
    case proto::AgentMessage::kNodeSucceeded:
      return NodeSucceeded{r.WorldOf(in.node_succeeded())};
    case proto::AgentMessage::kStopDone:
      return StopDone{r.WorldOf(in.stop_done()),
                      r.Port(in.stop_done().candidate_port(), "stop_done.candidate_port"),
                      r.LastStep(in.stop_done().steps_done(), "stop_done.steps_done")};
    case proto::AgentMessage::kShardReport: {
      const proto::ShardReport& shard = in.shard_report();
      return ShardReport{r.WorldOf(shard), Rank(r.Count(shard.rank(), 0, "shard_report.rank")),
                         r.Count(shard.shard_count(), 1, "shard_report.shard_count"),
                         r.CommitOf(shard)};
    }
    case proto::AgentMessage::kCommitDone:
      return CommitDone{r.WorldOf(in.commit_done()), r.CommitOf(in.commit_done())};
    case proto::AgentMessage::kLeave:
      return Leave{r.Text(in.leave().reason(), kMaxText, "leave.reason"), in.leave().is_lost()};
    case proto::AgentMessage::kWorkerSucceeded:
      return WorkerSucceeded{r.WorldOf(in.worker_succeeded())};
    case proto::AgentMessage::kLeaveRequest:
      return LeaveRequest{r.WorldOf(in.leave_request()),
                          r.Text(in.leave_request().reason(), kMaxText, "leave_request.reason")};
    case proto::AgentMessage::kCheckpointStep:
      return ReadWorldAndStep<CheckpointStep>(r, in.checkpoint_step());
    case proto::AgentMessage::kCheckpointStepKnown:
      return ReadWorldAndStep<CheckpointStepKnown>(r, in.checkpoint_step_known());
    case proto::AgentMessage::MESSAGE_NOT_SET:
      break;
  }
  r.Need(false, "it is of no known kind");
  return Heartbeat{};
}

RendezvousMessage ReadRendezvousMessage(FieldReader& r, const proto::RendezvousMessage& in) {
  switch (in.message_case()) {
    case proto::RendezvousMessage::kAttached:
      return ReadAttached(r, in.attached());
    case proto::RendezvousMessage::kRefused:
      return ReadRefused(r, in.refused());
    case proto::RendezvousMessage::kHeartbeatAck:
      return HeartbeatAck{in.heartbeat_ack().sequence()};
    case proto::RendezvousMessage::kNotice:
      return Notice{r.Text(in.notice().text(), kMaxText, "notice.text"),
                    r.Round(in.notice().running_round(), "notice.running_round")};
    case proto::RendezvousMessage::kStartRound:
      return ReadStart(r, in.start_round());
    case proto::RendezvousMessage::kStopRound:
      return ReadStop(r, in.stop_round());
    case proto::RendezvousMessage::kSuccessNoted:
      return SuccessNoted{r.WorldOf(in.success_noted())};
    case proto::RendezvousMessage::kCommitGranted:
      return CommitGranted{r.WorldOf(in.commit_granted()), r.CommitOf(in.commit_granted())};
    case proto::RendezvousMessage::kCommitRefused:
      return CommitRefused{r.WorldOf(in.commit_refused()), r.CommitOf(in.commit_refused()),
                           r.Text(in.commit_refused().reason(), kMaxText, "commit_refused.reason")};
    case proto::RendezvousMessage::kCommitNoted:
      return CommitNoted{r.WorldOf(in.commit_noted()), r.CommitOf(in.commit_noted())};
    case proto::RendezvousMessage::kJobEnded:
      return ReadJobEnded(r, in.job_ended());
    case proto::RendezvousMessage::kCheckpointWanted:
      return CheckpointWanted{r.WorldOf(in.checkpoint_wanted())};
    case proto::RendezvousMessage::kCheckpointAt:
      return ReadWorldAndStep<CheckpointAt>(r, in.checkpoint_at());
    case proto::RendezvousMessage::kCheckpointAgreed:
      return ReadWorldAndStep<CheckpointAgreed>(r, in.checkpoint_agreed());
    case proto::RendezvousMessage::kDrained:
      return Drained{};
    case proto::RendezvousMessage::MESSAGE_NOT_SET:
      break;
  }
  r.Need(false, "it is of no known kind");
  return Notice{};
}

}  // namespace

proto::RoundScope ToProto(const RoundScope& scope) {
  proto::RoundScope out;
  out.set_run_id(scope.run_id);
  out.set_incarnation(IdBytes(scope.incarnation));
  *out.mutable_world() = ToProto(scope.world);
  return out;
}

proto::AgentMessage ToProto(const AgentMessage& message) {
  proto::AgentMessage out;
  std::visit(
      Overloaded{
          [&](const Attach& m) { *out.mutable_attach() = AttachToProto(m); },
          [&](const Heartbeat& m) {
            out.mutable_heartbeat()->set_sequence(m.sequence);
            out.mutable_heartbeat()->set_steps_done(m.step + 1);
            out.mutable_heartbeat()->set_can_save(m.can_save);
          },
          [&](const WorkerFailed& m) {
            *out.mutable_worker_failed()->mutable_world() = ToProto(m.world);
            *out.mutable_worker_failed()->mutable_failure() = ToProto(m.failure);
          },
          [&](const NodeSucceeded& m) {
            *out.mutable_node_succeeded()->mutable_world() = ToProto(m.world);
          },
          [&](const StopDone& m) {
            *out.mutable_stop_done()->mutable_world() = ToProto(m.world);
            out.mutable_stop_done()->set_candidate_port(m.candidate_port);
            out.mutable_stop_done()->set_steps_done(m.last_step + 1);
          },
          [&](const ShardReport& m) {
            SetWorldAndCommit(out.mutable_shard_report(), m);
            out.mutable_shard_report()->set_rank(m.rank.value);
            out.mutable_shard_report()->set_shard_count(m.shard_count);
          },
          [&](const CommitDone& m) { SetWorldAndCommit(out.mutable_commit_done(), m); },
          [&](const Leave& m) {
            out.mutable_leave()->set_reason(Head(m.reason, kMaxText));
            out.mutable_leave()->set_is_lost(m.is_lost);
          },
          [&](const WorkerSucceeded& m) {
            *out.mutable_worker_succeeded()->mutable_world() = ToProto(m.world);
          },
          [&](const LeaveRequest& m) {
            *out.mutable_leave_request()->mutable_world() = ToProto(m.world);
            out.mutable_leave_request()->set_reason(Head(m.reason, kMaxText));
          },
          [&](const CheckpointStep& m) { SetWorldAndStep(out.mutable_checkpoint_step(), m); },
          [&](const CheckpointStepKnown& m) {
            SetWorldAndStep(out.mutable_checkpoint_step_known(), m);
          },
      },
      message);
  return out;
}

proto::RendezvousMessage ToProto(const RendezvousMessage& message) {
  proto::RendezvousMessage out;
  std::visit(
      Overloaded{
          [&](const Attached& m) {
            out.mutable_attached()->set_lease_ns(m.lease.count());
            out.mutable_attached()->set_reconnect_timeout_ns(m.reconnect_timeout.count());
          },
          [&](const Refused& m) {
            out.mutable_refused()->set_code(static_cast<proto::Refused::Code>(m.code));
            out.mutable_refused()->set_message(Head(m.message, kMaxText));
          },
          [&](const HeartbeatAck& m) { out.mutable_heartbeat_ack()->set_sequence(m.sequence); },
          [&](const Notice& m) {
            out.mutable_notice()->set_text(Head(m.text, kMaxText));
            if (m.running_round.value > 0)
              out.mutable_notice()->set_running_round(m.running_round.value);
          },
          [&](const StartRound& m) { *out.mutable_start_round() = StartToProto(m); },
          [&](const StopRound& m) {
            proto::StopRound* stop = out.mutable_stop_round();
            *stop->mutable_world() = ToProto(m.world);
            stop->set_cause(static_cast<proto::StopRound::Cause>(m.cause));
            stop->set_reason(Head(m.reason, kMaxText));
            stop->set_culprit(m.culprit.value);
          },
          [&](const SuccessNoted& m) {
            *out.mutable_success_noted()->mutable_world() = ToProto(m.world);
          },
          [&](const CommitGranted& m) { SetWorldAndCommit(out.mutable_commit_granted(), m); },
          [&](const CommitRefused& m) {
            SetWorldAndCommit(out.mutable_commit_refused(), m);
            out.mutable_commit_refused()->set_reason(Head(m.reason, kMaxText));
          },
          [&](const CommitNoted& m) { SetWorldAndCommit(out.mutable_commit_noted(), m); },
          [&](const JobEnded& m) {
            *out.mutable_job_ended()->mutable_verdict() = ToProto(m.verdict);
          },
          [&](const CheckpointWanted& m) {
            *out.mutable_checkpoint_wanted()->mutable_world() = ToProto(m.world);
          },
          [&](const CheckpointAt& m) { SetWorldAndStep(out.mutable_checkpoint_at(), m); },
          [&](const CheckpointAgreed& m) { SetWorldAndStep(out.mutable_checkpoint_agreed(), m); },
          [&](const Drained&) { out.mutable_drained(); },
      },
      message);
  return out;
}

absl::StatusOr<AgentMessage> FromProto(const proto::AgentMessage& message) {
  FieldReader reader;
  AgentMessage out = ReadAgentMessage(reader, message);
  if (absl::Status status = reader.status(); !status.ok()) return status;
  return out;
}

absl::StatusOr<RendezvousMessage> FromProto(const proto::RendezvousMessage& message) {
  FieldReader reader;
  RendezvousMessage out = ReadRendezvousMessage(reader, message);
  if (absl::Status status = reader.status(); !status.ok()) return status;
  return out;
}

absl::StatusOr<RoundScope> FromProto(const proto::RoundScope& scope) {
  FieldReader reader;
  reader.Need(!scope.run_id().empty(), "scope.run_id is empty");
  RoundScope out{reader.Text(scope.run_id(), kMaxName, "scope.run_id"),
                 reader.RequiredId<Incarnation>(scope.incarnation(), "scope.incarnation"),
                 reader.WorldOf(scope)};
  if (absl::Status status = reader.status(); !status.ok()) return status;
  return out;
}

absl::StatusOr<World> FromProto(const proto::World& world) {
  FieldReader reader;
  World out = reader.ReadWorld(world);
  if (absl::Status status = reader.status(); !status.ok()) return status;
  return out;
}

absl::StatusOr<Commit> FromProto(const proto::Commit& commit) {
  FieldReader reader;
  Commit out = reader.ReadCommit(commit);
  if (absl::Status status = reader.status(); !status.ok()) return status;
  return out;
}

absl::StatusOr<Verdict> FromProto(const proto::Verdict& verdict) {
  FieldReader reader;
  Verdict out = ReadVerdict(reader, verdict);
  if (absl::Status status = reader.status(); !status.ok()) return status;
  return out;
}

}  // namespace muster
