#include "rendezvous/core/round_policy.h"

#include "base/planted_fault.h"

namespace muster::rendezvous {
namespace {

std::string Seconds(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  return std::to_string(ms) + " ms";
}

}  // namespace

std::string Counted(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string NodeRange(int min_nodes, int max_nodes) {
  if (min_nodes == max_nodes) return Counted(min_nodes, "node");
  return std::to_string(min_nodes) + ".." + std::to_string(max_nodes) + " nodes";
}

RoundAnswer MayCloseRound(const RoundQuestion& q) {
  const std::string here =
      std::to_string(q.ready_nodes) + " of " + NodeRange(q.min_nodes, q.max_nodes);
  const std::string are_here = here + (q.ready_nodes == 1 ? " is here" : " are here");
  const int enough = MUSTER_PLANTED(kBelowMinRuns, 1, q.min_nodes);
  if (q.ready_nodes < enough) {
    const int missing = q.min_nodes - q.ready_nodes;
    return {false, Instant::Never(),
            "waiting for " + std::to_string(missing) + " more " +
                (missing == 1 ? "node" : "nodes") + " (" + are_here + ")"};
  }
  if (q.now < q.quiet_until) {
    return {false, q.quiet_until, are_here + "; agents of an earlier rendezvous may still report"};
  }
  if (q.now < q.elsewhere_until) {
    return {false, q.elsewhere_until,
            are_here + "; those who ran a round before this rendezvous began may still come back"};
  }
  if (q.now < q.form_not_before) {
    return {false, q.form_not_before, are_here + "; more may leave with the one that left"};
  }
  if (q.ready_nodes >= q.max_nodes) return {true, Instant::Never(), "all places are taken"};
  if (q.is_reforming) {
    if (q.returning_nodes == 0) return {true, Instant::Never(), "all survivors are back"};
    return {false, Instant::Never(),
            are_here + "; " + std::to_string(q.returning_nodes) + " may still come back"};
  }
  const Instant last_call = q.min_first_reached.value_or(q.now) + q.last_call_timeout;
  if (last_call <= q.now) return {true, Instant::Never(), "the last call is over"};
  return {false, last_call,
          are_here + "; waiting at most " + Seconds(q.last_call_timeout) + " for more"};
}

}  // namespace muster::rendezvous
