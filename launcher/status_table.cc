#include "launcher/status_table.h"

#include <algorithm>

#include "base/instant.h"
#include "base/visible_text.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

std::string Seconds(Duration duration) {
  int64_t tenths = std::max<int64_t>(duration.count(), 0) / 100'000'000;
  return Cat(tenths / 10, ".", tenths % 10, " s");
}

std::vector<std::string> JobRow(const rendezvous::JobReport& job) {
  return {job.run_id,
          job.state,
          std::to_string(job.round),
          std::to_string(job.attempt),
          Cat(job.restarts_charged, " of ", job.max_restarts),
          std::to_string(job.nodes.size()),
          job.committed_step ? Cat("step ", *job.committed_step) : "-",
          job.exit_code ? Cat("exit ", *job.exit_code) : "-"};
}

// A node without ranks is a spare beside a round, and waits for the next one otherwise.
std::string PlaceOf(const rendezvous::JobReport& job, const rendezvous::NodeReport& node) {
  if (node.group_rank) return std::to_string(*node.group_rank);
  if (node.is_set_aside) return "set aside";
  return job.state == "running" ? "spare" : "waits";
}

// What isn't so of every node.
std::string NoteOf(const rendezvous::NodeReport& node) {
  std::string note;
  const auto add = [&note](const std::string& text) {
    note += Cat(note.empty() ? "" : "; ", text);
  };
  if (node.hosts_rendezvous) add("hosts the rendezvous");
  if (node.leaves_because) add(Cat("leaves: ", *node.leaves_because));
  if (node.is_set_aside) {
    add(Cat("lost too often (--max-node-failures): waits for a checkpoint, at most ",
            Seconds(node.set_aside_left)));
  }
  return note;
}

std::vector<std::string> NodeRow(const rendezvous::JobReport& job,
                                 const rendezvous::NodeReport& node) {
  return {Cat("  ", node.node_name),
          node.address,
          PlaceOf(job, node),
          node.attached ? "attached" : "away",
          Seconds(node.since_last_message),
          NoteOf(node)};
}

}  // namespace

std::string Table(std::vector<std::vector<std::string>> rows) {
  std::vector<size_t> widths;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = VisibleText(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
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

std::string StatusPage(const std::vector<rendezvous::JobReport>& jobs) {
  if (jobs.empty()) return "no jobs\n";
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "STATE", "ROUND", "ATTEMPT", "RESTARTS", "NODES", "COMMIT", "RESULT"}};
  for (const rendezvous::JobReport& job : jobs) rows.push_back(JobRow(job));
  std::string page = Table(rows);
  for (const rendezvous::JobReport& job : jobs) {
    if (job.departed_host) {
      page += Cat("\nthe workers of node ", VisibleText(*job.departed_host), " have left ",
                  VisibleText(job.run_id),
                  ", but its muster process hosts the rendezvous and stays until the job ends\n");
    }
    if (job.nodes.empty()) continue;
    page += Cat("\nnodes of ", VisibleText(job.run_id), ":\n");
    std::vector<std::vector<std::string>> nodes = {
        {"  NODE", "ADDRESS", "GROUP RANK", "STREAM", "LEASE AGE", ""}};
    for (const rendezvous::NodeReport& node : job.nodes) nodes.push_back(NodeRow(job, node));
    const bool has_notes = std::ranges::any_of(
        nodes, [](const std::vector<std::string>& row) { return !row.back().empty(); });
    if (has_notes) nodes.front().back() = "NOTE";
    page += Table(nodes);
  }
  return page;
}

}  // namespace muster::launcher
