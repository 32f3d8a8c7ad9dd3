// `muster drain`: which agents are meant by a node, and when whoever waits for their end is
// answered.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/server/rendezvous_loop.h"

namespace muster::rendezvous {
namespace {

// Of the names of nodes in a message.
constexpr size_t kMostNamesBytes = 1000;

bool IsMeant(const NodeStatus& status, const std::string& node) {
  // An agent that has an address of its own is called "host(address)".
  return status.node_name == node || status.address == node ||
         status.node_name.starts_with(node + "(");
}

}  // namespace

CallId RendezvousLoop::Drain(DrainOrder order, const DrainAnswer& answer) {
  CallId id(++last_id_);
  bool taken = Enqueue([this, id, order = std::move(order), answer](Instant now) {
    if (now.IsNever()) return answer(ShuttingDown());
    StartDrain(now, id, order, answer);
  });
  if (!taken) answer(ShuttingDown());
  return id;
}

void RendezvousLoop::CancelDrain(CallId call) {
  Enqueue([this, call](Instant) {
    std::erase_if(draining_, [&](const Draining& drain) { return drain.call == call; });
  });
}

void RendezvousLoop::StartDrain(Instant now, CallId call, const DrainOrder& order,
                                DrainAnswer answer) {
  if (order.run_id && !jobs_.contains(*order.run_id))
    return answer(absl::NotFoundError(absl::StrCat("no job \"", *order.run_id, "\" is here")));
  Draining drain;
  drain.call = call;
  drain.node = order.node;
  drain.until = now + order.wait;
  std::string others;
  for (const auto& [run_id, job] : jobs_) {
    if (order.run_id && run_id != *order.run_id) continue;
    const JobStatus status = job->machine().Status(now);
    drain.has_host =
        drain.has_host || (status.departed_host && IsMeant(*status.departed_host, order.node));
    for (const NodeStatus& node : status.nodes) {
      if (IsMeant(node, order.node)) {
        drain.agents.emplace_back(run_id, node.incarnation);
        drain.has_host = drain.has_host || node.hosts_rendezvous;
      } else if (others.size() < kMostNamesBytes) {
        absl::StrAppend(&others, others.empty() ? "" : ", ", node.node_name);
      }
    }
  }
  drain.count = static_cast<int>(drain.agents.size());
  // It was drained before, and is as far as it can get.
  if (drain.agents.empty() && drain.has_host && !order.node.empty()) return answer(ResultOf(drain));
  if (drain.agents.empty() || order.node.empty()) {
    return answer(absl::NotFoundError(
        absl::StrCat("no node \"", order.node, "\" is ",
                     order.run_id ? absl::StrCat("in job \"", *order.run_id, "\"") : "in any job",
                     " here; ", others.empty() ? "there is no node" : "there are: ", others)));
  }
  if (order.wait > Duration(0) && draining_.size() >= kMaxWatchers) {
    return answer(absl::ResourceExhaustedError("too many callers wait for nodes that leave"));
  }
  for (const auto& [run_id, incarnation] : drain.agents) {
    StepJob(now, *jobs_.at(run_id), NodeDrained{incarnation});
  }
  if (order.wait <= Duration(0)) return answer(ResultOf(drain));
  next_due_ = std::min(next_due_, drain.until);
  drain.answer = std::move(answer);
  draining_.push_back(std::move(drain));
}

RendezvousLoop::DrainResult RendezvousLoop::ResultOf(const Draining& drain) const {
  // Whichever of its jobs goes on needs the process; one that all have left before it began is
  // none.
  const bool is_needed = std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    const JobState state = job.second->machine().state();
    return state != JobState::kSucceeded && state != JobState::kFailed &&
           !job.second->machine().IsBlank();
  });
  return {.agents = drain.count, .host_stays = drain.has_host && is_needed};
}

void RendezvousLoop::AnswerDrains(Instant now) {
  for (Draining& drain : draining_) {
    std::erase_if(drain.agents, [&](const auto& agent) {
      // Asked in every turn of the loop: a copy of the whole status would be too much.
      auto job = jobs_.find(agent.first);
      return job == jobs_.end() || !job->second->machine().HasMember(agent.second);
    });
    if (drain.agents.empty()) {
      drain.answer(ResultOf(drain));
    } else if (drain.until <= now) {
      drain.answer(absl::DeadlineExceededError(
          absl::StrCat("node \"", drain.node, "\" is to leave, but is still here")));
    } else {
      continue;
    }
    drain.answer = nullptr;
  }
  std::erase_if(draining_, [](const Draining& drain) { return drain.answer == nullptr; });
}

}  // namespace muster::rendezvous
