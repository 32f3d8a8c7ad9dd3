// The rules of the guardian: when workers are forked, signalled and reported, what is done about
// left-over descendants, and when everything is killed because the agent is gone, or frozen. Pure:
// an event goes in, effects come out in order; time is an argument. The guardian's only thread owns
// it.
//
//   Idle ──SpawnAsked──► Running ──StopAsked──► Stopping ──grace over, left-overs──► Killing
//    ▲                                             │        after a failure             │
//    └───────────────── no process is left ◄───────┴────────────────────────────────────┘
//   Running, Stopping ──deadline passed──► Killing: the agent is frozen or out of contact; once it
//   is back it may want new workers any ──AgentGone──► Dying ──no process is left, or bound──►
//   Ended
//
//               Idle        Running       Stopping         Killing          Dying      Ended
//  SpawnAsked   Fork →Run.  Fork (1)      refused          refused          -          -
//  ForkFailed   -           reported      reported         reported         -          -
//  ExecDone     -           reported      reported         reported         -          -
//  ExecFailed   -           reported      reported         reported         -          -
//  ChildEnded   -           reported      reported (2)     reported (2)     (2)        -
//  StopAsked    gone        →Stop. (3)    shortens         -                -          -
//  SignalAsked  -           to groups     to groups        -                -          -
//  AgentGone    →Ended      →Dying        →Dying           →Dying           -          -
//  LeftSeen     -           -             none: gone →Idle none: gone →Idle none: →Ended -
//                                         some: (4)        some: SIGKILL    some: SIGKILL
//  TimePassed   -           deadline      grace, deadline  sweep, give up   sweep, →Ended -
//                           →Killing      →Killing
//
//  (1) Another round than the current one, or a local rank that runs, is refused (EBUSY).
//  (2) With the last worker gone: look for left-overs. A child that is no worker is only reaped.
//  (3) StopAsked for another round than the current one: it is gone; says so.
//  (4) SIGKILL to what is in the session of a worker that had failed before the stop, and, unless
//  all
//      workers ended with 0, to what is in a session of its own. The rest gets the first signal, if
//      it hasn't had it with its worker, and what is left of the grace: a program behind a shell
//      may save, an uploader may finish. With nothing of the kind →Killing.
#ifndef MUSTER_AGENT_GUARDIAN_GUARDIAN_MACHINE_H_
#define MUSTER_AGENT_GUARDIAN_GUARDIAN_MACHINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster::agent::guardian {

// How long to wait for processes to end after SIGKILL before they are given up on: only a process
// in uninterruptible sleep (a dead file server, a stuck driver) takes longer.
inline constexpr Duration kKillPatience = std::chrono::seconds(5);
// The same once the agent is gone: nobody waits for the answer any more.
inline constexpr Duration kDyingPatience = std::chrono::seconds(10);
// Pause between two sweeps that kill what was forked since the last; doubles up to the maximum, as
// a sweep reads all of /proc.
inline constexpr Duration kFirstSweepPause = std::chrono::milliseconds(20);
inline constexpr Duration kMaxSweepPause = std::chrono::milliseconds(320);
// What workers left behind is waited for this long before anybody is told.
inline constexpr Duration kLeftNoticeAfter = std::chrono::seconds(1);

// ---- events --------------------------------------------------------------------------------

struct SpawnAsked {
  RoundId round;
  LocalRank local_rank;
};
// The answers to Fork.
struct Forked {
  LocalRank local_rank;
  int64_t pid = 0;
};
struct ForkFailed {
  LocalRank local_rank;
  int error = 0;
};
// The child has become the worker's program, or couldn't and will exit.
struct ExecDone {
  int64_t pid = 0;
};
struct ExecFailed {
  int64_t pid = 0;
  int error = 0;
};
// A child was reaped: a worker, or an orphan that came to us.
struct ChildEnded {
  int64_t pid = 0;
  WorkerExit exit;
};
struct StopAsked {
  RoundId round;
  int first_signal = 15;
  Duration grace{0};
};
struct SignalAsked {
  int signal = 0;
  // Absent: to all workers of the round.
  std::optional<LocalRank> local_rank = std::nullopt;
};
struct DeadlineRenewed {
  Instant deadline;
};
struct AgentGone {};
// The answer to LookForLeftOvers: every descendant that isn't a zombie.
struct LeftSeen {
  std::vector<int64_t> pids;
  // By pid: the leader of its session, which is a worker's pid unless it has left that.
  std::map<int64_t, int64_t> sessions = {};
};
// At or after NextWakeup(), once all that has arrived is taken.
struct TimePassed {};

using Event =
    std::variant<SpawnAsked, Forked, ForkFailed, ExecDone, ExecFailed, ChildEnded, StopAsked,
                 SignalAsked, DeadlineRenewed, AgentGone, LeftSeen, TimePassed>;

// ---- effects -------------------------------------------------------------------------------

// Answered by Forked or ForkFailed before any other event.
struct Fork {
  RoundId round;
  LocalRank local_rank;
};
// To the process group that a worker leads. The worker isn't reaped, so its pid is its own.
struct SignalGroup {
  int64_t pid = 0;
  int signal = 0;
};
// Answered by LeftSeen.
struct LookForLeftOvers {};
// To each of these processes, which LeftSeen named.
struct SignalProcesses {
  std::vector<int64_t> pids;
  int signal = 0;
};
struct ReportStarted {
  RoundId round;
  LocalRank local_rank;
  int64_t pid = 0;
};
struct ReportFailedToStart {
  RoundId round;
  LocalRank local_rank;
  int error = 0;
};
struct ReportExited {
  RoundId round;
  LocalRank local_rank;
  int64_t pid = 0;
  WorkerExit exit;
};
// All workers have ended; these processes are given what is left of the grace.
struct ReportLeft {
  RoundId round;
  std::vector<int64_t> pids;
  Duration grace{0};
};
struct ReportGone {
  RoundId round;
  std::vector<int64_t> unkillable;
};
// Remove the agent's private folder and exit.
struct Exit {};

using Effect = std::variant<Fork, SignalGroup, LookForLeftOvers, SignalProcesses, ReportStarted,
                            ReportFailedToStart, ReportExited, ReportLeft, ReportGone, Exit>;

// ---- the machine ---------------------------------------------------------------------------

enum class State { kIdle, kRunning, kStopping, kKilling, kDying, kEnded };

class GuardianMachine {
 public:
  // `now` never goes backwards.
  std::vector<Effect> Step(Instant now, const Event& event);
  Instant NextWakeup() const;
  State state() const { return state_; }
  // The newest that was spawned.
  RoundId round() const { return round_; }

 private:
  struct Worker {
    int64_t pid = 0;
    // ReportStarted or ReportFailedToStart was said.
    bool is_reported = false;
    bool never_started = false;
    bool has_ended = false;
    // Before it was to stop.
    bool has_failed = false;
    // It, and all in its group, got the first signal of the stop.
    bool was_signalled = false;
  };

  void On(const SpawnAsked& asked);
  void On(const Forked& forked);
  void On(const ForkFailed& failed);
  void On(const ExecDone& done);
  void On(const ExecFailed& failed);
  void On(const ChildEnded& ended);
  void On(const StopAsked& asked);
  void On(const SignalAsked& asked);
  void On(const DeadlineRenewed& renewed);
  void On(const AgentGone& gone);
  void On(const LeftSeen& seen);
  void On(const TimePassed& passed);

  bool IsEnding() const;
  bool HasRound() const;
  bool AnyWorkerLives() const;
  // The local rank whose live worker has this pid; end() if it is no worker's.
  std::map<LocalRank, Worker>::iterator FindLive(int64_t pid);
  void SignalLiveGroups(int signal);
  // The worker whose session this is; null: nobody's.
  const Worker* WorkerOfSession(int64_t session) const;
  // Gives what deserves it the grace. False if nothing does.
  bool SpareLeftOvers(const LeftSeen& seen);
  void EnterKilling(State state, Duration patience);
  void Die();
  void SweepLater();
  void BecomeGone(std::vector<int64_t> unkillable);

  State state_ = State::kIdle;
  RoundId round_;
  std::map<LocalRank, Worker> workers_;
  bool any_failed_ = false;
  int first_signal_ = 15;
  std::set<int64_t> left_overs_signalled_;
  // Of the newest LeftSeen, without those given up on.
  std::vector<int64_t> left_;
  std::set<int64_t> given_up_;
  Instant deadline_ = Instant::Never();
  Instant grace_end_ = Instant::Never();
  Instant left_notice_at_ = Instant::Never();
  bool left_was_told_ = false;
  Instant kill_end_ = Instant::Never();
  Instant next_sweep_ = Instant::Never();
  Duration sweep_pause_ = kFirstSweepPause;

  // Within Step() only.
  Instant now_;
  std::vector<Effect> effects_;
};

}  // namespace muster::agent::guardian

#endif  // MUSTER_AGENT_GUARDIAN_GUARDIAN_MACHINE_H_
