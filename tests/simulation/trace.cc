#include "tests/simulation/trace.h"

#include <cstdio>
#include <optional>
#include <variant>

namespace muster::simulation {
namespace {

std::string Number(int64_t value) { return std::to_string(value); }

std::string Describe(const std::optional<Commit>& commit) {
  return commit ? " resume " + Number(commit->step) : std::string();
}

struct AgentWords {
  std::string operator()(const Attach& m) const {
    std::string text = "Attach " + m.incarnation.ToHex().substr(0, 4) + " highest " +
                       Number(static_cast<int64_t>(m.highest_round.value)) + " charged " +
                       Number(m.restarts_charged) + Describe(m.last_commit);
    if (!m.running) return text;
    return text + " running " + simulation::Describe(m.running->world) +
           (m.running->succeeded ? " succeeded" : "");
  }
  std::string operator()(const Heartbeat& m) const {
    return "Heartbeat " + Number(static_cast<int64_t>(m.sequence));
  }
  std::string operator()(const WorkerFailed& m) const {
    return "WorkerFailed " + simulation::Describe(m.world) + " rank " +
           Number(m.failure.rank.value) + " code " + Number(m.failure.exit.ShellCode());
  }
  std::string operator()(const NodeSucceeded& m) const {
    return "NodeSucceeded " + simulation::Describe(m.world);
  }
  std::string operator()(const StopDone& m) const {
    return "StopDone " + simulation::Describe(m.world) +
           (m.last_step < 0 ? "" : " step " + Number(m.last_step));
  }
  std::string operator()(const ShardReport& m) const {
    return "ShardReport " + simulation::Describe(m.world) + " rank " + Number(m.rank.value) +
           " step " + Number(m.commit.step);
  }
  std::string operator()(const CommitDone& m) const {
    return "CommitDone " + simulation::Describe(m.world) + " step " + Number(m.commit.step);
  }
  std::string operator()(const Leave& m) const { return "Leave " + m.reason; }
  std::string operator()(const WorkerSucceeded& m) const {
    return "WorkerSucceeded " + simulation::Describe(m.world);
  }
  std::string operator()(const LeaveRequest& m) const {
    return "LeaveRequest " + simulation::Describe(m.world) + " " + m.reason;
  }
  std::string operator()(const CheckpointStep& m) const {
    return "CheckpointStep " + simulation::Describe(m.world) + " step " + Number(m.step);
  }
  std::string operator()(const CheckpointStepKnown& m) const {
    return "CheckpointStepKnown " + simulation::Describe(m.world) + " step " + Number(m.step);
  }
};

struct RendezvousWords {
  std::string operator()(const Attached&) const { return "Attached"; }
  std::string operator()(const Refused& m) const {
    return "Refused " + Number(static_cast<int>(m.code)) + " " + m.message;
  }
  std::string operator()(const HeartbeatAck& m) const {
    return "HeartbeatAck " + Number(static_cast<int64_t>(m.sequence));
  }
  std::string operator()(const Notice& m) const { return "Notice " + m.text; }
  std::string operator()(const StartRound& m) const {
    return "StartRound " + simulation::Describe(m.world) + " node " + Number(m.group_rank.value) +
           "/" + Number(m.group_world_size) + " rank " + Number(m.first_rank.value) + "/" +
           Number(m.world_size) + " attempt " + Number(m.attempt) + " charged " +
           Number(m.restarts_charged) + Describe(m.resume);
  }
  std::string operator()(const StopRound& m) const {
    return "StopRound " + simulation::Describe(m.world) + " cause " +
           Number(static_cast<int>(m.cause)) + " " + m.reason;
  }
  std::string operator()(const SuccessNoted& m) const {
    return "SuccessNoted " + simulation::Describe(m.world);
  }
  std::string operator()(const CommitGranted& m) const {
    return "CommitGranted " + simulation::Describe(m.world) + " step " + Number(m.commit.step);
  }
  std::string operator()(const CommitRefused& m) const {
    return "CommitRefused " + simulation::Describe(m.world) + " step " + Number(m.commit.step) +
           " " + m.reason;
  }
  std::string operator()(const CommitNoted& m) const {
    return "CommitNoted " + simulation::Describe(m.world) + " step " + Number(m.commit.step);
  }
  std::string operator()(const JobEnded& m) const {
    return "JobEnded " + simulation::Describe(m.verdict);
  }
  std::string operator()(const CheckpointWanted& m) const {
    return "CheckpointWanted " + simulation::Describe(m.world);
  }
  std::string operator()(const CheckpointAt& m) const {
    return "CheckpointAt " + simulation::Describe(m.world) + " step " + Number(m.step);
  }
  std::string operator()(const Drained&) const { return "Drained"; }
  std::string operator()(const CheckpointAgreed& m) const {
    return "CheckpointAgreed " + simulation::Describe(m.world) + " step " + Number(m.step);
  }
};

}  // namespace

void Trace::Add(Instant now, const std::string& text) {
  char time[32];
  double seconds = std::chrono::duration<double>(now.since_origin()).count() - 1000.0;
  std::snprintf(time, sizeof time, "%11.6f  ", seconds);
  lines_.push_back(time + text);
  if (lines_.size() > kMostLines) lines_.pop_front();
}

std::string Describe(const AgentMessage& message) { return std::visit(AgentWords(), message); }

std::string Describe(const RendezvousMessage& message) {
  return std::visit(RendezvousWords(), message);
}

std::string Describe(const World& world) {
  return "r" + Number(static_cast<int64_t>(world.round.value)) + "-" +
         world.id.ToHex().substr(0, 4);
}

std::string Describe(const Verdict& verdict) {
  return std::string(verdict.succeeded ? "success" : "failure") + " exit " +
         Number(verdict.exit_code) + " charged " + Number(verdict.restarts_charged) + " " +
         verdict.reason;
}

}  // namespace muster::simulation
