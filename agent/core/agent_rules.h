// The rules behind AgentMachine (agent_machine.h says what they are for), in one class over its
// sources by decision: contact with the rendezvous (agent_rules.cc), the round's workers
// (agent_rules_round.cc), those that hang (agent_rules_hang.cc), the end (agent_rules_end.cc), and
// going in order with a checkpoint that all ranks agree on (agent_rules_leave.cc). Private to the
// machine.
#ifndef MUSTER_AGENT_CORE_AGENT_RULES_H_
#define MUSTER_AGENT_CORE_AGENT_RULES_H_

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/agent_machine.h"
#include "agent/core/commit_requests.h"
#include "agent/core/contact.h"
#include "agent/core/hang_watch.h"
#include "agent/core/stop_policy.h"
#include "agent/core/worker_group.h"

namespace muster::agent {

class AgentRules {
 public:
  AgentRules(AgentOptions options, Incarnation incarnation, Instant started);

  std::vector<AgentEffect> Step(const StepInput& input, const AgentEvent& event);
  Instant NextWakeup() const;
  Incarnation incarnation() const { return incarnation_; }
  bool has_ended() const { return has_ended_; }

 private:
  // How the agent will end once its workers are gone.
  struct Ending {
    Verdict verdict;
    // The rendezvous has to be told, if contact holds: Leave with the verdict's reason.
    bool takes_leave = false;
    // ... and that this node is lost, rather than that it goes in order.
    bool is_lost = false;
    // Nobody can take this node's place any more, so the lease binds no longer.
    bool is_job_over = false;
  };
  // This node wants to go and its workers save first; LeaveRequest was sent. JobEnded lets it go.
  struct Departure {
    int signal = 0;
    // What announced it: a signal's name, or a notice.
    std::string notice;
    bool is_by_notice = false;
    std::string why;
    // When the workers are stopped without that checkpoint, and when the last one must be gone.
    Instant gives_up_at;
    Instant ends_at;
    // What was saved since, after the step that was agreed on.
    std::optional<int64_t> saved_step;
  };
  // One checkpoint that all ranks of the round agree on, as far as this node knows of it.
  struct AgreedCheckpoint {
    // Named by rank 0's worker, which waits on this node.
    std::optional<int64_t> announced;
    // Named by the rendezvous, and which of our workers know.
    std::optional<int64_t> step;
    std::set<LocalRank> known_by;
  };

  void On(const RendezvousConnected& event);
  void On(const RendezvousDisconnected& event);
  void On(const EndpointProbed& event);
  void On(const RendezvousSaid& event);
  void On(const WorkerStarted& event);
  void On(const WorkerSaidHello& event);
  void On(const WorkerEnded& event);
  void On(const GroupGone& event);
  void On(const WorkerReportedShard& event);
  void On(const WorkerCommitted& event);
  void On(const WorkerReportedStep& event);
  void On(const WorkerAnswered& event);
  void On(const WorkerLeft& event);
  void On(const WorkerAnnouncedCheckpoint& event);
  void On(const WorkerKnowsCheckpoint& event);
  void On(const StopRequested& event);
  void On(const GuardianLost& event);
  void On(const TimePassed&) {}

  void Said(const Attached& message);
  void Said(const Refused& message);
  void Said(const HeartbeatAck& message);
  void Said(const Notice& message);
  void Said(const StartRound& message);
  void Said(const StopRound& message);
  void Said(const SuccessNoted&) {}  // Attach.running.succeeded repeats it; nothing to keep.
  void Said(const CommitGranted& message);
  void Said(const CommitRefused& message);
  void Said(const CommitNoted& message);
  void Said(const JobEnded& message);
  void Said(const CheckpointWanted& message);
  void Said(const CheckpointAt& message);
  void Said(const CheckpointAgreed& message);
  void Said(const Drained& message);

  // Contact.
  bool HasWorkersToLose() const;
  bool LeaseMatters() const;
  Contact::Allowance Allowance() const;
  void CheckPatience();
  void CheckLease();
  void RenewByTime();
  void LoseContact(const std::string& why);
  void CloseContact();
  void ServeTimers();
  void RepeatWhatIsOwed();

  // The group.
  void Spawn(const StartRound& place);
  void StartWhatWaits();
  void EndRound(Rank culprit, const std::string& reason);
  void Stop(const StopPlan& plan);
  bool IsLive(const World& world) const {
    return group_ && group_->is_live() && group_->world() == world;
  }
  bool HasProcesses() const { return group_ && !group_->is_gone(); }
  void Supersede(const std::string& why);
  void LookForHangs();

  // Leaving with an agreed checkpoint.
  bool CanDepart(const StopRequested& event) const;
  void Depart(const StopRequested& event);
  void ServeDeparture();
  Instant DepartureDue() const;
  Verdict VerdictOnDeparture() const;
  // Of a stop that the user or a notice asked for.
  Verdict VerdictOfStop(int signal, const std::string& notice) const;
  // Whether this process outlives its workers, for the other nodes.
  bool StaysForOthers() const;
  // What another signal does while the workers are stopped, and that this process stays.
  std::string WhatFollowsStop() const;
  bool AllKnowTheStep() const;
  void SayIfAllKnow();
  void NoteSaved(const Commit& commit);

  // The end.
  void EndWith(Ending ending, const StopPlan& plan);
  void FinishEnding();

  void Answer(const std::vector<CommitRequests::Request>& requests, const std::string& refusal);
  void Send(AgentMessage message) { Emit(SendToRendezvous{std::move(message)}); }
  void ShowLine(const std::string& text);
  void Emit(AgentEffect effect) { effects_.push_back(std::move(effect)); }

  const AgentOptions options_;
  const StopTimes times_;
  Incarnation incarnation_;
  Contact contact_;
  std::optional<WorkerGroup> group_;
  // Of the group's workers.
  HangWatch hang_watch_;
  // A round that starts as soon as the group before it is gone.
  std::optional<StartRound> waiting_start_;
  // A StopDone that no open stream could take yet.
  std::optional<StopDone> owed_stop_done_;
  RoundId highest_round_;
  // As the last Notice said.
  RoundId round_elsewhere_;
  // What was last heard of the job; a rendezvous that restarts learns it from us.
  int restarts_charged_ = 0;
  std::optional<Commit> last_commit_;
  CommitRequests commits_;
  AgreedCheckpoint agreed_;
  std::optional<Departure> departure_;
  // A person sent this node away.
  bool is_drained_ = false;
  std::optional<Ending> ending_;
  Instant next_renewal_ = Instant::Never();
  int user_stops_ = 0;
  bool has_ended_ = false;
  std::string why_missing_;
  std::string last_shown_;
  // How the workers of the last group were stopped, until it is shown or of no interest any more.
  std::string stopped_;
  // Of the step under way.
  Instant now_;
  Incarnation fresh_incarnation_;
  std::vector<AgentEffect> effects_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_AGENT_RULES_H_
