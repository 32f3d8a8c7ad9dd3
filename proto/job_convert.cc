#include "proto/job_convert.h"

#include <algorithm>
#include <string>

namespace muster {
namespace {

std::string Tail(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(text.size() - most);
}

}  // namespace

std::string Head(const std::string& text, size_t most) { return text.substr(0, most); }

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

proto::JobTerms ToProto(const JobTerms& terms) {
  proto::JobTerms out;
  out.set_run_id(terms.run_id);
  out.set_min_nodes(terms.min_nodes);
  out.set_max_nodes(terms.max_nodes);
  out.set_is_static(terms.is_static);
  out.set_max_restarts(terms.max_restarts);
  out.set_join_timeout_ns(terms.join_timeout.count());
  out.set_last_call_timeout_ns(terms.last_call_timeout.count());
  out.set_version(terms.version);
  out.set_program(Head(terms.program, kMaxPath));
  out.set_max_restarts_per_hour(terms.max_restarts_per_hour);
  out.set_min_uptime_ns(terms.min_uptime.count());
  out.set_max_early_failures(terms.max_early_failures);
  out.set_max_stuck_restarts(terms.max_stuck_restarts);
  out.set_max_node_failures(terms.max_node_failures);
  out.set_scale_up(static_cast<proto::JobTerms::ScaleUp>(terms.scale_up));
  return out;
}

proto::NodeFacts ToProto(const NodeFacts& facts) {
  proto::NodeFacts out;
  out.set_cuda_version(Head(facts.cuda_version, kMaxVersion));
  out.set_driver_version(Head(facts.driver_version, kMaxVersion));
  out.set_nccl_version(Head(facts.nccl_version, kMaxVersion));
  out.set_gpu_count(facts.gpu_count);
  out.set_wall_time_ms(facts.wall_time_ms);
  out.set_topology(facts.topology);
  return out;
}

proto::WorkerFailure ToProto(const WorkerFailure& failure) {
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
  out.set_hung(failure.hung);
  out.set_only_waited(failure.only_waited);
  out.set_out_of_memory(failure.out_of_memory);
  out.set_evidence(Head(failure.evidence, kMaxText));
  out.set_core_file(failure.core_file);
  out.set_stacks_file(failure.stacks_file);
  out.set_steps_done(failure.last_step + 1);
  return out;
}

proto::Verdict ToProto(const Verdict& verdict) {
  proto::Verdict out;
  out.set_succeeded(verdict.succeeded);
  out.set_reason(Head(verdict.reason, kMaxText));
  out.set_exit_code(verdict.exit_code);
  for (size_t i = 0; i < std::min(verdict.failures.size(), kMaxFailures); ++i)
    *out.add_failures() = ToProto(verdict.failures[i]);
  out.set_restarts_charged(verdict.restarts_charged);
  return out;
}

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
  out.version = r.Text(in.version(), kMaxVersion, "terms.version");
  out.program = r.Text(in.program(), kMaxPath, "terms.program");
  out.max_restarts_per_hour = r.Count(in.max_restarts_per_hour(), 0, "terms.max_restarts_per_hour");
  out.min_uptime = r.Span(in.min_uptime_ns(), "terms.min_uptime_ns");
  out.max_early_failures = r.Count(in.max_early_failures(), 0, "terms.max_early_failures");
  out.max_stuck_restarts = r.Count(in.max_stuck_restarts(), 0, "terms.max_stuck_restarts");
  out.max_node_failures = r.Count(in.max_node_failures(), 0, "terms.max_node_failures");
  r.Need(in.scale_up() >= proto::JobTerms::AUTO && in.scale_up() <= proto::JobTerms::CHECKPOINT,
         "terms.scale_up is unknown");
  out.scale_up = static_cast<ScaleUp>(in.scale_up());
  return out;
}

NodeFacts ReadFacts(FieldReader& r, const proto::NodeFacts& in) {
  NodeFacts out;
  out.cuda_version = r.Text(in.cuda_version(), kMaxVersion, "facts.cuda_version");
  out.driver_version = r.Text(in.driver_version(), kMaxVersion, "facts.driver_version");
  out.nccl_version = r.Text(in.nccl_version(), kMaxVersion, "facts.nccl_version");
  out.gpu_count = r.Count(in.gpu_count(), 0, "facts.gpu_count");
  out.wall_time_ms = in.wall_time_ms();
  r.Need(out.wall_time_ms >= 0, "facts.wall_time_ms is negative");
  out.topology = r.Text(in.topology(), kMaxName, "facts.topology");
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
  out.hung = in.hung();
  out.only_waited = in.only_waited();
  out.out_of_memory = in.out_of_memory();
  out.evidence = r.Text(in.evidence(), kMaxText, "failure.evidence");
  out.core_file = r.Text(in.core_file(), kMaxPath, "failure.core_file");
  out.stacks_file = r.Text(in.stacks_file(), kMaxPath, "failure.stacks_file");
  out.last_step = r.LastStep(in.steps_done(), "failure.steps_done");
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

}  // namespace muster
