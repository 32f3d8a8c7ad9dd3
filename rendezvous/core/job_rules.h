// The state and the decisions behind JobMachine, private to it. One class, its source split by
// decision: job_machine.cc (dispatch, time, status), job_attach.cc (who comes in, or back),
// job_recovery.cc (a world that ran before this rendezvous), job_membership.cc (forming, losing),
// job_stopping.cc (the end), job_commit.cc, job_leave.cc. Owned by JobMachine; used on its thread.
#ifndef MUSTER_RENDEZVOUS_CORE_JOB_RULES_H_
#define MUSTER_RENDEZVOUS_CORE_JOB_RULES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/planted_fault.h"
#include "rendezvous/core/attach_check.h"
#include "rendezvous/core/failed_starts.h"
#include "rendezvous/core/job_limits.h"
#include "rendezvous/core/job_machine.h"
#include "rendezvous/core/lease_table.h"
#include "rendezvous/core/member.h"
#include "rendezvous/core/newest_commit.h"
#include "rendezvous/core/node_losses.h"
#include "rendezvous/core/release_table.h"
#include "rendezvous/core/restart_ledger.h"
#include "rendezvous/core/round.h"
#include "rendezvous/core/round_policy.h"

namespace muster::rendezvous {

class JobMachine::Rules {
 public:
  Rules(std::string run_id, JobOptions options, Instant started);

  std::vector<JobEffect> Step(const StepInput& input, const JobEvent& event);
  Instant NextWakeup() const { return wakeup_; }
  JobState state() const { return state_; }
  bool IsDone() const { return IsFinal() && sessions_.empty(); }
  std::optional<JobRecord> OpenedAnewBy(const Attach& attach) const;
  bool IsBlank() const {
    return !terms_ && members_.empty() && claimants_.empty() && highest_round_.value == 0 &&
           !verdict_;
  }
  JobStatus Status(Instant now) const;
  bool HasMember(const Incarnation& agent) const { return incarnations_.contains(agent); }

 private:
  // ---- job_machine.cc ----
  void On(const SessionMessage& event);
  void On(const SessionEnded& event);
  void On(const TimePassed& event);
  void On(const HostStopping& event);
  void On(const HostRefused& event);
  void On(const NodeDrained& event);
  void On(const NodeCannotStart& event);
  void Handle(Member& member, const Attach& attach);
  void Handle(Member& member, const Heartbeat& heartbeat);
  void Handle(Member& member, const WorkerFailed& message);
  void Handle(Member& member, const NodeSucceeded& message);
  void Handle(Member& member, const StopDone& message);
  void Handle(Member& member, const ShardReport& message);
  void Handle(Member& member, const CommitDone& message);
  void Handle(Member& member, const Leave& message);
  void Handle(Member& member, const WorkerSucceeded& message);
  void Handle(Member& member, const LeaveRequest& message);
  void Handle(Member& member, const CheckpointStep& message);
  void Handle(Member& member, const CheckpointStepKnown& message);
  void Expire();
  Instant ComputeWakeup() const;
  bool IsFinal() const { return state_ == JobState::kSucceeded || state_ == JobState::kFailed; }
  // The one place that refuses what belongs to another world.
  bool IsCurrent(const World& world) const {
    return round_ && MUSTER_PLANTED(kFencingOff, true, world == round_->world);
  }
  void SendTo(const Member& member, RendezvousMessage message);
  void SendOn(SessionId session, RendezvousMessage message);
  void Note(const std::string& text);
  void Keep(bool before_the_rest);
  std::string RoundName() const;

  // ---- job_attach.cc ----
  void OnAttach(SessionId session, const Attach& attach);
  void VoidVerdict(const Attach& later);
  void YieldTo(const Attach& veteran);
  void AttachNewcomer(SessionId session, const Attach& attach);
  void Reattach(Member& member, SessionId session, const Attach& attach);
  void ResumeSlot(Member& member, const RunningWorld& running);
  void ReattachWithoutWorkers(Member& member, const Attach& attach);
  void AttachAfterEnd(SessionId session, const Attach& attach);
  void Refuse(SessionId session, RefusalCode code, const std::string& message);
  // Refuses a member and takes it out of the job, as lost.
  void Supersede(Member& member, const std::string& why);
  Member& AddMember(SessionId session, const Attach& attach);
  // Says, once for each node, where it differs from the first one that is here.
  void CompareFacts(const Member& newcomer);
  void Bind(Member& member, SessionId session);
  void Unbind(Member& member);
  void RemoveMember(Member& member);
  Member* FindIncarnation(const Incarnation& incarnation);
  Member* HolderOf(const Attach& attach);
  void RefuseClaimants(const Member& holder);
  void AdmitClaimants();

  // ---- job_recovery.cc ----
  void AttachRunning(SessionId session, const Attach& attach);
  void BeginRecovering(const Attach& attach);
  void DropRecoveredRound(const World& newer);
  void TakeSlot(SessionId session, const Attach& attach);
  bool FitsRound(const Attach& attach) const;
  // After a report: is the world complete, or known to be incomplete for good?
  void WeighRecovery();
  int SlotsUnaccounted() const;
  void GiveUpMissing();

  // ---- job_membership.cc ----
  // Looks at who is here: opens, closes or stops a round if the rules say so.
  void Evaluate();
  void EvaluateGathering();
  RoundQuestion Question() const;
  int ReadyNodes() const;
  int ReturningNodes() const { return static_cast<int>(members_.size() - sessions_.size()); }
  bool WantsScaleUp() const;
  bool MayScaleUp() const;
  void FormRound();
  void FillRound(const std::vector<Member*>& participants, int world_size);
  StartRound PlaceOf(const Slot& slot) const;
  void SetAside(Member& member, Instant until);
  void EndSetAside(Member& member);
  void EndSetAsides();
  // Takes back as many nodes that are set aside as MIN needs, if it can be reached with them.
  void TakeLastResort();
  void Lose(const std::vector<Member*>& members, const std::string& why);
  // The part of Lose() that concerns the round. True if the round has to stop for it.
  bool LoseSlot(Member& member);
  void Depart(Member& member, const std::string& reason);
  void ForgetEmptyJob();
  void TellNewcomer(Member& member);
  void TellWaiting();
  std::string WaitingText(const Member& member) const;
  std::string WaitingForText() const;

  // ---- job_stopping.cc ----
  void BeginStop(StopOrigin origin, StopCause cause, const std::string& reason, Rank culprit);
  void MaybeFinishStop();
  bool MayBeOutdated() const;
  void FinishStop();
  // Charges the failures of the round that just stopped. False if that ended the job.
  bool ChargeFailures(const Round& round);
  RestartLedger::RoundEnd EndOf(const Round& round) const;
  void NoteSuccess(Member& member, Slot& slot);
  void MaybeSucceed();
  void FailBelowMin(int exit_code, const std::string& cause);
  std::string WhoIsMissing() const;
  // `verdict.reason` is the bare cause: what is said to people begins with the job's name.
  void EndJob(JobState state, Verdict verdict);

  // ---- job_commit.cc ----
  void SendOpenGrant();
  void TellOfCommit(MemberId rank_zero);

  // ---- job_leave.cc ----
  void NoteDeparture(Member& member, Member::Departure departure);
  void WeighDepartures();
  bool CanSave() const;
  bool AreCollected() const;
  Instant DepartureDue() const;
  void StopForDepartures();
  void LetIdleGo();
  bool IsMissedIfItGoes(const Member& member) const;
  void LetGo(Member& member, std::optional<int64_t> saved_step);
  const Verdict& Release(const Member& member, std::optional<int64_t> saved_step);
  void LetDepartingGo(const Round& round);
  void ResendAgreement(const Member& member, size_t index);
  void KnowStep(size_t index);
  const std::string run_id_;
  // All but what was kept stays as it is.
  JobOptions options_;
  const Instant quiet_until_;
  // Who ran a world before this rendezvous and hasn't said so by then is out of contact, and has
  // killed its workers as one whose lease is over does: nothing was refused to it since the start.
  const Instant unheard_are_lost_at_;

  JobState state_ = JobState::kGathering;
  // Of the step under way.
  StepInput input_;
  std::vector<JobEffect> effects_;
  Instant wakeup_ = Instant::Never();

  std::optional<JobTerms> terms_;
  Opener opener_;

  // In order of arrival; addresses are stable.
  std::map<MemberId, Member> members_;
  std::unordered_map<Incarnation, Member*> incarnations_;
  std::unordered_map<SessionId, Member*> sessions_;
  std::unordered_map<int, Member*> holders_;  // by --node-rank
  // Nodes that ask for a --node-rank whose holder is attached: refused when it shows a sign of
  // life, sent away to attach again when it is gone; at most a lease later.
  std::map<SessionId, Attach> claimants_;
  uint64_t arrivals_ = 0;
  bool is_replacing_ = false;   // a node goes as another one comes in its place
  bool host_is_new_ = false;    // no round of the job was seen by the process that hosts us
  std::set<std::string> gone_;  // names of nodes that were here and went
  std::set<std::string> known_to_differ_;  // nodes whose differences from others have been said
  int set_aside_attached_ = 0;
  LeaseTable leases_;  // of agents that are attached
  LeaseTable graces_;  // of those whose stream ended

  RoundId highest_round_;
  RoundId round_elsewhere_;     // the newest of which a spare or the record told
  std::optional<Round> round_;  // running, stopping or being recovered
  bool has_formed_ = false;     // a round, itself: no other world can be newer
  // A round ran in this life of the rendezvous: the next closes without a last call.
  bool is_reforming_ = false;
  Instant recover_deadline_ = Instant::Never();
  int places_vacated_ = 0;  // by members with lost_recovered_round, gone or not

  // Since when fewer than MIN nodes are ready, with at least one member or a round before.
  std::optional<Instant> below_min_since_;
  std::optional<Instant> min_first_reached_;
  // While gathering: when to ask the policy again, and its last reason.
  Instant ask_again_ = Instant::Never();
  std::string waiting_reason_;
  // Who left in order since the last round was formed: below MIN nobody waits for another.
  std::string left_because_;
  // When the first of those nodes asked to go that will leave with the current round.
  std::optional<Instant> departures_since_;
  Instant checkpoint_due_ = Instant::Never();
  bool has_idle_leavers_ = false;  // someone is to go who has no part in a round
  // After a plain Leave: others may follow, so nothing is formed before this.
  Instant form_not_before_;
  ReleaseTable released_;
  FailedStarts failed_starts_;
  Instant notice_due_ = Instant::Never();

  RestartLedger ledger_;
  NodeLosses losses_;
  // When the first of those that are set aside may take part again.
  Instant set_aside_ends_ = Instant::Never();
  NewestCommit last_commit_;
  Instant last_commit_at_;
  // The round before the current one, as far as this life of the rendezvous knows.
  RoundId previous_round_;
  bool is_at_commit_ = false;
  std::optional<Verdict> verdict_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_JOB_RULES_H_
