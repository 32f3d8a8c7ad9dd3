#include "rendezvous/core/attach_check.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

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

// The longest part of a command line that a sentence shows, and how much of it may come before the
// place where two differ.
constexpr size_t kMostShown = 120;
constexpr size_t kShownBefore = 40;

// Of a long text the part around `differs_at`.
std::string Shown(const std::string& text, size_t differs_at) {
  if (text.size() <= kMostShown) return "\"" + text + "\"";
  const size_t begin = differs_at > kShownBefore ? differs_at - kShownBefore : 0;
  const bool is_end = text.size() - begin <= kMostShown;
  return std::string("\"") + (begin > 0 ? "..." : "") + text.substr(begin, kMostShown) +
         (is_end ? "" : "...") + "\"";
}

// Empty if they are the same, or one isn't told.
std::string OtherProgram(const Names& names, const std::string& here, const std::string& job) {
  if (here.empty() || job.empty() || here == job) return "";
  const auto differs_at = static_cast<size_t>(
      std::mismatch(here.begin(), here.end(), job.begin(), job.end()).first - here.begin());
  return Differ(names, "the program", Shown(here, differs_at), Shown(job, differs_at));
}

bool IsNumeric(const std::string& address) {
  return !address.empty() &&
         address.find_first_not_of("0123456789abcdefABCDEF.:") == std::string::npos &&
         address.find_first_of(".:") != std::string::npos;
}

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

const char* ScaleUpName(ScaleUp scale_up) {
  switch (scale_up) {
    case ScaleUp::kAuto:
      return "auto";
    case ScaleUp::kImmediate:
      return "immediate";
    case ScaleUp::kCheckpoint:
      return "checkpoint";
  }
  return "unknown";
}

// What decides over restarts and membership: each by its flag.
std::optional<std::string> OtherRules(const Names& names, const JobTerms& here,
                                      const JobTerms& job) {
  const std::pair<const char*, int JobTerms::*> kCounts[] = {
      {"--max-restarts", &JobTerms::max_restarts},
      {"--max-restarts-per-hour", &JobTerms::max_restarts_per_hour},
      {"--max-early-failures", &JobTerms::max_early_failures},
      {"--max-stuck-restarts", &JobTerms::max_stuck_restarts},
      {"--max-node-failures", &JobTerms::max_node_failures}};
  const std::string remedy = "; give the same on every node";
  for (const auto& [flag, count] : kCounts) {
    if (here.*count == job.*count) continue;
    return Differ(names, flag, std::to_string(here.*count), std::to_string(job.*count)) + remedy;
  }
  if (here.min_uptime != job.min_uptime) {
    return Differ(names, "--min-uptime", Seconds(here.min_uptime), Seconds(job.min_uptime)) +
           remedy;
  }
  if (here.scale_up != job.scale_up) {
    return Differ(names, "--scale-up", ScaleUpName(here.scale_up), ScaleUpName(job.scale_up)) +
           remedy;
  }
  return std::nullopt;
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
  if (!terms.is_static && attach.node_rank &&
      (*attach.node_rank < 0 || *attach.node_rank >= kMaxNodes)) {
    return node + " has --node-rank=" + std::to_string(*attach.node_rank) + "; give 0 to " +
           std::to_string(kMaxNodes - 1);
  }
  if (attach.running &&
      (attach.running->world.round.value == 0 || attach.running->world.id.IsNone())) {
    return node + " runs a round without a number or a world id";
  }
  if (std::max(attach.highest_round, attach.round_elsewhere).value > kMaxRound ||
      (attach.running && attach.running->world.round.value > kMaxRound)) {
    return node + " speaks of round " + std::to_string(attach.highest_round.value) +
           ", which no job reaches";
  }
  return std::nullopt;
}

JobPast PastOf(const Attach& attach) {
  JobPast past{attach.highest_round, attach.was_attached};
  if (attach.running) past.round = std::max(past.round, attach.running->world.round);
  return past;
}

std::optional<std::string> Disagreement(const JobTerms& job, const Opener& opener,
                                        const Attach& attach) {
  const JobTerms& here = attach.terms;
  const Names names{opener.node_name, attach.node_name};
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
  if (auto rules = OtherRules(names, here, job)) return rules;
  if (here.join_timeout != job.join_timeout) {
    return Differ(names, "join_timeout", Seconds(here.join_timeout), Seconds(job.join_timeout)) +
           "; give the same --rdzv-conf on every node";
  }
  if (here.last_call_timeout != job.last_call_timeout) {
    return Differ(names, "last_call_timeout", Seconds(here.last_call_timeout),
                  Seconds(job.last_call_timeout)) +
           "; give the same --rdzv-conf on every node";
  }
  const std::string other_program = OtherProgram(names, here.program, job.program);
  if (other_program.empty() || here.is_static) return std::nullopt;
  return other_program +
         "; give the same command on every node, another --rdzv-id for another job, or "
         "--allow-other-programs everywhere";
}

std::string OtherStaticProgram(const JobTerms& job, const Opener& opener, const Attach& attach) {
  if (!attach.terms.is_static) return "";
  return OtherProgram({opener.node_name, attach.node_name}, attach.terms.program, job.program);
}

std::optional<std::string> AddressProblem(const Opener& opener, const Attach& attach) {
  if (!IsNumeric(opener.address) || !IsNumeric(attach.address)) return std::nullopt;
  if (IsLoopback(opener.address) == IsLoopback(attach.address)) return std::nullopt;
  const std::string& lonely = IsLoopback(opener.address) ? opener.node_name : attach.node_name;
  return "node " + attach.node_name + " has the address " + attach.address + ", and node " +
         opener.node_name + " opened the job with " + opener.address +
         "; other hosts can't reach a loopback address: give node " + lonely +
         " another one, by --local-addr or, among --hosts, by another name for that host";
}

}  // namespace muster::rendezvous
