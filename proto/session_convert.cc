#include "proto/session_convert.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "proto/field_reader.h"

namespace muster {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// ---- structs -> protobuf -------------------------------------------------------------------

template <class Id>
std::string IdBytes(const Id& id) {
  if (id.IsNone()) return "";
  return std::string(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}

std::string Head(const std::string& text, size_t most) { return text.substr(0, most); }

std::string Tail(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(text.size() - most);
}

proto::JobTerms TermsToProto(const JobTerms& terms) {
  proto::JobTerms out;
  out.set_run_id(terms.run_id);
  out.set_min_nodes(terms.min_nodes);
  out.set_max_nodes(terms.max_nodes);
  out.set_is_static(terms.is_static);
  out.set_max_restarts(terms.max_restarts);
  out.set_join_timeout_ns(terms.join_timeout.count());
  out.set_last_call_timeout_ns(terms.last_call_timeout.count());
  out.set_version(terms.version);
  return out;
}

proto::WorkerFailure FailureToProto(const WorkerFailure& failure) {
  proto::WorkerFailure out;
  out.set_rank(failure.rank.value);
  out.set_local_rank(failure.local_rank.value);
  out.set_node_name(failure.node_name);
  out.set_pid(failure.pid);
  out.mutable_exit()->set_code(failure.exit.code);
  out.mutable_exit()->set_signal(failure.exit.signal);
  out.mutable_exit()->set_dumped_core(failure.exit.dumped_core);
  out.set_wall_time_s(failure.wall_time_s);
  out.set_age_ns(failure.age.count());
  out.set_failed_to_start(failure.failed_to_start);
  out.set_error_file(failure.error_file);
  out.set_message(Head(failure.message, kMaxText));
  out.set_stderr_tail(Tail(failure.stderr_tail, kMaxStderrTail));
  out.set_log_path(failure.log_path);
  return out;
}

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
  return out;
}

proto::Attach AttachToProto(const Attach& attach) {
  proto::Attach out;
  out.set_incarnation(IdBytes(attach.incarnation));
  out.set_node_name(attach.node_name);
  out.set_address(attach.address);
  out.set_worker_count(attach.worker_count);
  if (attach.node_rank) out.set_node_rank(*attach.node_rank);
  *out.mutable_terms() = TermsToProto(attach.terms);
  out.set_candidate_port(attach.candidate_port);
  if (attach.running) *out.mutable_running() = RunningToProto(*attach.running);
  out.set_highest_round(attach.highest_round.value);
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

// ---- protobuf -> structs -------------------------------------------------------------------

JobTerms ReadTerms(FieldReader& r, const proto::JobTerms& in) {
  r.Need(!in.run_id().empty(), "terms.run_id is empty");
  JobTerms out;
  out.run_id = r.Text(in.run_id(), kMaxName, "terms.run_id");
  out.min_nodes = r.Count(in.min_nodes(), 1, "terms.min_nodes");
  out.max_nodes = r.Count(in.max_nodes(), out.min_nodes, "terms.max_nodes");
  out.is_static = in.is_static();
  out.max_restarts = in.max_restarts();
  r.Need(out.max_restarts >= 0, "terms.max_restarts is negative");
  out.join_timeout = r.Span(in.join_timeout_ns(), "terms.join_timeout_ns");
  out.last_call_timeout = r.Span(in.last_call_timeout_ns(), "terms.last_call_timeout_ns");
  out.version = r.Text(in.version(), 64, "terms.version");
  return out;
}

WorkerFailure ReadFailure(FieldReader& r, const proto::WorkerFailure& in) {
  r.Need(in.has_exit(), "failure.exit is missing");
  r.Need(in.exit().code() >= 0 && in.exit().code() <= 255, "failure.exit.code is out of range");
  r.Need(in.exit().signal() >= 0 && in.exit().signal() <= 127,
         "failure.exit.signal is out of range");
  WorkerFailure out;
  out.rank = Rank(r.Count(in.rank(), -1, "failure.rank"));
  out.local_rank = LocalRank(r.Count(in.local_rank(), -1, "failure.local_rank"));
  out.node_name = r.Text(in.node_name(), kMaxName, "failure.node_name");
  out.pid = in.pid();
  out.exit = {in.exit().code(), in.exit().signal(), in.exit().dumped_core()};
  out.wall_time_s = in.wall_time_s();
  out.age = r.Span(in.age_ns(), "failure.age_ns");
  out.failed_to_start = in.failed_to_start();
  out.error_file = r.Text(in.error_file(), kMaxPath, "failure.error_file");
  out.message = r.Text(in.message(), kMaxText, "failure.message");
  out.stderr_tail = r.Text(in.stderr_tail(), kMaxStderrTail, "failure.stderr_tail");
  out.log_path = r.Text(in.log_path(), kMaxPath, "failure.log_path");
  return out;
}

Verdict ReadVerdict(FieldReader& r, const proto::Verdict& in) {
  r.Need(in.exit_code() >= 0 && in.exit_code() <= 255, "verdict.exit_code is out of range");
  r.Need(in.failures_size() <= static_cast<int>(kMaxFailures), "verdict has too many failures");
  Verdict out;
  out.succeeded = in.succeeded();
  out.reason = r.Text(in.reason(), kMaxText, "verdict.reason");
  out.exit_code = in.exit_code();
  for (const proto::WorkerFailure& f : in.failures()) out.failures.push_back(ReadFailure(r, f));
  out.restarts_charged = in.restarts_charged();
  r.Need(out.restarts_charged >= 0, "verdict.restarts_charged is negative");
  return out;
}

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

AgentMessage ReadAgentMessage(FieldReader& r, const proto::AgentMessage& in) {
  switch (in.message_case()) {
    case proto::AgentMessage::kAttach:
      return ReadAttach(r, in.attach());
    case proto::AgentMessage::kHeartbeat:
      return Heartbeat{in.heartbeat().sequence()};
    case proto::AgentMessage::kWorkerFailed:
      return ReadWorkerFailed(r, in.worker_failed());
    case proto::AgentMessage::kNodeSucceeded:
      return NodeSucceeded{r.WorldOf(in.node_succeeded())};
    case proto::AgentMessage::kStopDone:
      return StopDone{r.WorldOf(in.stop_done()),
                      r.Port(in.stop_done().candidate_port(), "stop_done.candidate_port")};
    case proto::AgentMessage::kShardReport: {
      const proto::ShardReport& shard = in.shard_report();
      return ShardReport{r.WorldOf(shard), Rank(r.Count(shard.rank(), 0, "shard_report.rank")),
                         r.Count(shard.shard_count(), 1, "shard_report.shard_count"),
                         r.CommitOf(shard)};
    }
    case proto::AgentMessage::kCommitDone:
      return CommitDone{r.WorldOf(in.commit_done()), r.CommitOf(in.commit_done())};
    case proto::AgentMessage::kLeave:
      return Leave{r.Text(in.leave().reason(), kMaxText, "leave.reason")};
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
      return Notice{r.Text(in.notice().text(), kMaxText, "notice.text")};
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
    case proto::RendezvousMessage::MESSAGE_NOT_SET:
      break;
  }
  r.Need(false, "it is of no known kind");
  return Notice{};
}

}  // namespace

proto::World ToProto(const World& world) {
  proto::World out;
  out.set_round(world.round.value);
  out.set_id(IdBytes(world.id));
  return out;
}

proto::Commit ToProto(const Commit& commit) {
  proto::Commit out;
  out.set_step(commit.step);
  out.set_directory(commit.directory);
  return out;
}

proto::Verdict ToProto(const Verdict& verdict) {
  proto::Verdict out;
  out.set_succeeded(verdict.succeeded);
  out.set_reason(Head(verdict.reason, kMaxText));
  out.set_exit_code(verdict.exit_code);
  for (size_t i = 0; i < std::min(verdict.failures.size(), kMaxFailures); ++i)
    *out.add_failures() = FailureToProto(verdict.failures[i]);
  out.set_restarts_charged(verdict.restarts_charged);
  return out;
}

proto::RoundScope ToProto(const RoundScope& scope) {
  proto::RoundScope out;
  out.set_run_id(scope.run_id);
  out.set_incarnation(IdBytes(scope.incarnation));
  *out.mutable_world() = ToProto(scope.world);
  return out;
}

proto::AgentMessage ToProto(const AgentMessage& message) {
  proto::AgentMessage out;
  std::visit(Overloaded{
                 [&](const Attach& m) { *out.mutable_attach() = AttachToProto(m); },
                 [&](const Heartbeat& m) { out.mutable_heartbeat()->set_sequence(m.sequence); },
                 [&](const WorkerFailed& m) {
                   *out.mutable_worker_failed()->mutable_world() = ToProto(m.world);
                   *out.mutable_worker_failed()->mutable_failure() = FailureToProto(m.failure);
                 },
                 [&](const NodeSucceeded& m) {
                   *out.mutable_node_succeeded()->mutable_world() = ToProto(m.world);
                 },
                 [&](const StopDone& m) {
                   *out.mutable_stop_done()->mutable_world() = ToProto(m.world);
                   out.mutable_stop_done()->set_candidate_port(m.candidate_port);
                 },
                 [&](const ShardReport& m) {
                   SetWorldAndCommit(out.mutable_shard_report(), m);
                   out.mutable_shard_report()->set_rank(m.rank.value);
                   out.mutable_shard_report()->set_shard_count(m.shard_count);
                 },
                 [&](const CommitDone& m) { SetWorldAndCommit(out.mutable_commit_done(), m); },
                 [&](const Leave& m) { out.mutable_leave()->set_reason(Head(m.reason, kMaxText)); },
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
          [&](const Notice& m) { out.mutable_notice()->set_text(Head(m.text, kMaxText)); },
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

}  // namespace muster
