// What must hold after every step, whatever fails (DESIGN.md §5): the judge of a simulated run. It
// sees what the rendezvous hears and says, what the agents do, and what is true (Worlds), and keeps
// the first rule that was broken. Owned by SimWorld; one thread.
#ifndef MUSTER_TESTS_SIMULATION_INVARIANTS_H_
#define MUSTER_TESTS_SIMULATION_INVARIANTS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/core/job_machine.h"
#include "tests/simulation/sim_agent.h"
#include "tests/simulation/sim_parts.h"

namespace muster::simulation {

class Invariants {
 public:
  explicit Invariants(SimParts& parts) : parts_(parts) {}

  bool is_broken() const { return !broken_.empty(); }
  // One sentence; the first one stays.
  const std::string& broken() const { return broken_; }
  void Break(const std::string& rule);

  // ---- the rendezvous
  // `kept`: what its earlier lives kept; what it should have kept is known here too.
  void RendezvousStarted(const rendezvous::JobRecord& kept);
  void RendezvousCrashed() { sessions_.clear(); }
  // Before the step.
  void RendezvousHears(const rendezvous::JobEvent& event);
  // Before the step too: who is set aside.
  void NoteSetAside(const std::vector<rendezvous::NodeStatus>& nodes);
  void ForgetSetAside() { set_aside_.clear(); }
  // After it.
  void RendezvousSays(const rendezvous::StepInput& input,
                      const std::vector<rendezvous::JobEffect>& effects);

  // It is about to be told that this node is sent away.
  void IsDrained(const Incarnation& incarnation) { leaving_.insert(incarnation); }

  // ---- the agents
  void SessionOpened(SessionId session, AgentIndex agent);
  void CheckSpawn(AgentIndex agent, const StartRound& place);
  // Both by the agent's own clock.
  // `nobody_there_at`: when the agent's last probe began that was refused.
  void CheckDeadline(Instant deadline, Instant last_acknowledged,
                     const std::optional<Instant>& nobody_there_at);
  void AgentEnded(AgentIndex agent, const Verdict& verdict);

  // ---- both
  // After TimePassed a machine may not be due again at once.
  void CheckWakeup(const char* who, Instant now, Instant next);
  // Before it, what was due at `was` stays so, whatever else comes.
  void CheckStillDue(const char* who, Instant now, Instant was, Instant next);

  // A complete world runs, all of whose workers run or have exited 0.
  bool RunsWell() const;
  bool AnyoneIsAttached() const;
  bool IsMember(const Incarnation& incarnation) const;
  bool job_has_ended() const { return verdict_.has_value(); }
  bool job_has_succeeded() const { return verdict_ && verdict_->succeeded; }
  int rounds_started() const { return rounds_started_; }

 private:
  struct Session {
    AgentIndex agent = -1;
    bool is_open = false;
    // Attached was said on it.
    bool is_attached = false;
    bool is_refused = false;
    // Its Attach said so.
    bool is_drained = false;
    Incarnation incarnation{};
  };
  using Starts = std::vector<std::pair<SessionId, const StartRound*>>;

  uint64_t NumberOf(const Session& session) const;
  void Heard(Session& session, const Attach& attach);
  void Heard(Session& session, const StopDone& done);
  void Heard(Session& session, const ShardReport& report);
  void Heard(Session&, const CommitDone&) {}
  void Heard(Session&, const WorkerFailed&) {}
  void Heard(Session& session, const NodeSucceeded& done) { HeardSuccess(session, done.world); }
  void Heard(Session&, const Heartbeat&) {}
  void Heard(Session& session, const WorkerSucceeded& done) { HeardSuccess(session, done.world); }
  void Heard(Session& session, const LeaveRequest& request);
  void Heard(Session&, const CheckpointStep&) {}
  void Heard(Session&, const CheckpointStepKnown&) {}
  void Heard(Session& session, const Leave& leave);

  void Said(SessionId session, const RendezvousMessage& message);
  void SaidStart(Session& session, const StartRound& start);
  void SaidGrant(Session& session, const CommitGranted& granted);
  void SaidNoted(const CommitNoted& noted);
  void SaidEnd(const JobEnded& ended);
  void CheckSilentLoss(const Session& session);

  void RoundStarted(const rendezvous::RoundStarted& started, const rendezvous::StepInput& input,
                    const Starts& starts);
  void RoundRecovered(WorldIndex index);
  void CheckNumber(const World& world);
  void CheckPlaces(const rendezvous::RoundStarted& started, const Starts& starts);
  void CheckOldWorkers(const Starts& starts);
  void CheckWorldsBeside(const World& world);
  void CheckNobodyForgotten(const Starts& starts);
  void CheckCharge(int charged);
  void CheckResume(const std::optional<Commit>& resume);
  void RoundOver(const rendezvous::RoundOver& over);

  // ---- rule_invariants.cc: the rules of restarts, losses and growth
  void HeardSuccess(const Session& session, const World& world);
  void SaidStop(const StopRound& stop);
  void NoteCharge(int charged);
  void CheckSetAside(const Starts& starts);
  // Of a verdict that blames a worker.
  void CheckWhyEnded(const Verdict& verdict);
  void CheckStuck();
  void CheckNeverLived();

  SimParts& parts_;
  std::string broken_;

  // Of this life of the rendezvous.
  std::unordered_map<SessionId, Session> sessions_;
  WorldIndex open_world_ = -1;
  WorldIndex last_world_ = -1;
  Knowledge known_;
  // Known from before this life, until a node comes back that was in the job, or one begins anew.
  std::optional<Commit> kept_commit_;
  RoundId kept_commit_told_in_;
  // The latest round seen by whoever told of known_.commit, or the one that committed it.
  RoundId commit_told_in_;
  // This rendezvous heard of it from the world that made it: what others tell of a round of that
  // number is older, or of a world that a rendezvous without memory has replaced.
  bool commit_is_ours_ = false;
  // The last round that it formed itself; 0: none.
  RoundId formed_;
  // Whether anybody came, who came first is of another job, and one came that was in this one.
  bool was_opened_ = false;
  bool has_stranger_opened_ = false;
  bool is_job_known_ = false;
  std::optional<Verdict> verdict_;
  WorldIndex first_world_ = 0;
  std::vector<WorldIndex> charged_worlds_;
  std::set<Incarnation> set_aside_;
  // Who is to leave: gets a farewell of its own, and no place any more.
  std::set<Incarnation> leaving_;
  // Over all lives.
  int most_charged_ = 0;
  int rounds_started_ = 0;
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_INVARIANTS_H_
