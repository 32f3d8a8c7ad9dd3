#include "rendezvous/core/attach_check.h"

#include <chrono>

namespace muster::rendezvous {
namespace {

std::string Nodes(const JobTerms& terms) {
  if (terms.min_nodes == terms.max_nodes) return std::to_string(terms.min_nodes);
  return std::to_string(terms.min_nodes) + ":" + std::to_string(terms.max_nodes);
}

std::string Layout(const JobTerms& terms) {
  return terms.is_static ? "static (--node-rank)" : "elastic (--rdzv-endpoint)";
}

std::string Seconds(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

// "node b has --nnodes=3, but the job was opened by node a with --nnodes=2; give ..."
struct Names {
  const std::string& first_node;
  const std::string& this_node;
};

std::string Differ(const Names& names, const std::string& what, const std::string& here,
                   const std::string& job) {
  return "node " + names.this_node + " has " + what + " " + here + ", but node " +
         names.first_node + " opened the job with " + job;
}

}  // namespace

std::optional<std::string> MalformedAttach(const Attach& attach) {
  const JobTerms& terms = attach.terms;
  const std::string node = "node " + attach.node_name;
  if (attach.incarnation.IsNone()) return node + " came without an incarnation";
  if (terms.min_nodes < 1 || terms.max_nodes < terms.min_nodes || terms.max_nodes > kMaxNodes) {
    return node + " has --nnodes=" + std::to_string(terms.min_nodes) + ":" +
           std::to_string(terms.max_nodes) +
           "; give MIN:MAX with 1 <= MIN <= MAX <= " + std::to_string(kMaxNodes);
  }
  if (attach.worker_count < 1 || attach.worker_count > kMaxWorkersPerNode) {
    return node + " has --nproc-per-node=" + std::to_string(attach.worker_count) +
           "; give a number from 1 to " + std::to_string(kMaxWorkersPerNode);
  }
  if (terms.max_restarts < 0) {
    return node + " has --max-restarts=" + std::to_string(terms.max_restarts) +
           "; give 0 or a positive number";
  }
  if (terms.is_static && !attach.node_rank) {
    return node + " has no --node-rank; give each node of a static job its own, from 0 to " +
           std::to_string(terms.max_nodes - 1);
  }
  if (terms.is_static && (*attach.node_rank < 0 || *attach.node_rank >= terms.max_nodes)) {
    return node + " has --node-rank=" + std::to_string(*attach.node_rank) +
           ", but --nnodes=" + Nodes(terms) + " allows 0 to " + std::to_string(terms.max_nodes - 1);
  }
  if (attach.running &&
      (attach.running->world.round.value == 0 || attach.running->world.id.IsNone())) {
    return node + " runs a round without a number or a world id";
  }
  if (attach.highest_round.value > kMaxRound ||
      (attach.running && attach.running->world.round.value > kMaxRound)) {
    return node + " speaks of round " + std::to_string(attach.highest_round.value) +
           ", which no job reaches";
  }
  return std::nullopt;
}

std::optional<std::string> Disagreement(const JobTerms& job, const std::string& first_node,
                                        const Attach& attach) {
  const JobTerms& here = attach.terms;
  const Names names{first_node, attach.node_name};
  if (here.version != job.version) {
    return Differ(names, "muster", here.version, job.version) +
           "; install the same version on every node";
  }
  if (here.is_static != job.is_static) {
    return Differ(names, "the layout", Layout(here), Layout(job)) +
           "; start every node with the same layout";
  }
  if (here.min_nodes != job.min_nodes || here.max_nodes != job.max_nodes) {
    return Differ(names, "--nnodes", Nodes(here), Nodes(job)) + "; give the same on every node";
  }
  if (here.max_restarts != job.max_restarts) {
    return Differ(names, "--max-restarts", std::to_string(here.max_restarts),
                  std::to_string(job.max_restarts)) +
           "; give the same on every node";
  }
  if (here.join_timeout != job.join_timeout) {
    return Differ(names, "join_timeout", Seconds(here.join_timeout), Seconds(job.join_timeout)) +
           "; give the same --rdzv-conf on every node";
  }
  if (here.last_call_timeout != job.last_call_timeout) {
    return Differ(names, "last_call_timeout", Seconds(here.last_call_timeout),
                  Seconds(job.last_call_timeout)) +
           "; give the same --rdzv-conf on every node";
  }
  return std::nullopt;
}

}  // namespace muster::rendezvous
