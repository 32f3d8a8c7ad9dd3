#include "launcher/status_table.h"

#include <algorithm>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

std::string Seconds(int64_t nanoseconds) {
  int64_t tenths = std::max<int64_t>(nanoseconds, 0) / 100'000'000;
  return Cat(tenths / 10, ".", tenths % 10, " s");
}

std::vector<std::string> JobRow(const proto::JobStatus& job) {
  bool has_commit = job.has_last_commit();
  return {job.run_id(),
          job.state(),
          std::to_string(job.world().round()),
          std::to_string(job.attempt()),
          Cat(job.restarts_charged(), " of ", job.max_restarts()),
          std::to_string(job.nodes_size()),
          has_commit ? Cat("step ", job.last_commit().step()) : "-",
          job.has_verdict() ? Cat("exit ", job.verdict().exit_code()) : "-"};
}

std::vector<std::string> NodeRow(const proto::NodeStatus& node) {
  return {Cat("  ", node.node_name()), node.address(),
          node.has_group_rank() ? std::to_string(node.group_rank()) : "spare",
          node.attached() ? "attached" : "away", Seconds(node.since_last_message_ns())};
}

}  // namespace

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string StatusPage(const proto::GetStatusReply& reply) {
  if (reply.jobs().empty()) return "no jobs\n";
  std::vector<std::vector<std::string>> jobs = {
      {"JOB", "STATE", "ROUND", "ATTEMPT", "RESTARTS", "NODES", "COMMIT", "RESULT"}};
  for (const proto::JobStatus& job : reply.jobs()) jobs.push_back(JobRow(job));
  std::string page = Table(jobs);
  for (const proto::JobStatus& job : reply.jobs()) {
    if (job.nodes().empty()) continue;
    page += Cat("\nnodes of ", job.run_id(), ":\n");
    std::vector<std::vector<std::string>> nodes = {
        {"  NODE", "ADDRESS", "GROUP RANK", "STREAM", "LAST HEARD"}};
    for (const proto::NodeStatus& node : job.nodes()) nodes.push_back(NodeRow(node));
    page += Table(nodes);
  }
  return page;
}

}  // namespace muster::launcher
