// The rules of one job's membership: who is in, which ranks they get, when a round starts, stops
// and starts again, and how the job ends. Pure: an event goes in, effects come out, time and fresh
// ids are arguments. One loop thread owns a machine (rendezvous/server/rendezvous_loop.h).
//
//                      MIN reached            MAX, last call, or all survivors back
//   Gathering ───────────────────► Closing ───────────────────────────► Running
//     ▲  ▲  ▲        below MIN        │                     all succeeded │  │ failure, loss,
//     │  │  └─────────────────────────┘                     Succeeded ◄───┘  │ growth, leave
//     │  └────────────── all acknowledged the stop ── Stopping ◄─────────────┘
//     └─ (start)                                       │  ▲
//                               budget spent: Failed ◄─┘  │ failure, leave, deadline
//   Recovering: a world that ran before this rendezvous ──┘ ... complete again: Running
//   Succeeded, Failed: final.
//
// State after an event (an agent's, of the current round where there is one), with MIN:MAX = 2:3
// and two agents; job_walk_test.cc feeds every cell. G(athering) C(losing) R(unning) S(topping)
// V (recovering) O (succeeded) F(ailed):
//
//   event                        G C R S V O F    what happens
//   Attach, newcomer             C R S S V O F    joins; MAX starts a round, a free place stops it
//   Attach, other terms          G C R S V O F    Refused, both values named
//   Attach, older world runs     V V R S V O F    recovered while this machine has formed no round
//   Attach again, workers run    G C R S V O F    is sent what it missed
//   Attach again, none run       G C S S S O F    StartRound anew if it never came; else a stop
//   stream ends                  G G R S V O F    may come back within reattach_grace
//   ... and it doesn't           G G S S V O F    lost; while recovering it counts as missing
//   silent for a lease           G G S S V O F    the same
//   Heartbeat, time              G C R S V O F    acknowledged; deadlines
//   WorkerSucceeded              G C R S V O F    noted: the round takes nobody in any more
//   NodeSucceeded                G C R S V O F    noted; the last one ends the job well
//   WorkerFailed                 G C S S S O F    the round stops
//   StopDone                     G C S S S O F    the last one ends the round
//   Leave                        G G S S S O F    free; below MIN the job ends (75), nobody waits
//   Leave, lost                  G G S S S O F    lost at once: another may come in its place
//   ShardReport, CommitDone      G C R S V O F    granted, noted, or refused as stale
//   LeaveRequest, NodeDrained    G G R S V O F    goes at the end of the round, which is stopped
//   for
//                                                 it (below); at once if it has no part in one
//   NodeCannotStart              G C R S V O F    told to those who wait, now or later
//   CheckpointStep, ...Known     G C R S V O F    passed on; the end of the round voids it
//   HostStopping                 F F F F F O F    StopRound and JobEnded to all
//   HostRefused                  F C R S V O F    the same where nodes are missing, else nothing
//
// Where DESIGN leaves it open:
// - attempt = round - 1, so that it survives a restart of the rendezvous and no log folder is used
//   twice, though numbers are left out where rounds were.
// - A round that a failure stopped is charged; one that a loss, a leave or growth stopped first is
//   not, whatever its workers report meanwhile: they die of it. Nor is one in which a node was
//   lost, left or came back without workers before it acknowledged. A noted success makes a loss
//   free.
// - A node that is set aside comes back with the next commit, after set_aside_for, or at once when
//   MIN can't be reached without it; the one with the fewest losses first.
// - Nobody is taken into a round once a worker of it has exited 0.
// - A lost incarnation that comes back with workers is Refused as superseded; without, it joins.
// - Below MIN after a loss the job waits join_timeout and ends with 69; after a Leave it ends at
//   once with 75.
// - A job whose agents all went before its first round is forgotten: the next one sets the terms.
// - Nodes that want to go are collected for kDepartureWindow from the first. Where all ranks can be
//   asked to save, the round goes on until a checkpoint counts after a step that they agree on (at
//   most JobOptions::checkpoint_patience); then it is stopped and re-formed without those nodes,
//   which are let go with 75. No checkpoint: 143 (as SIGTERM), 75 if drained.
// - After a plain Leave nothing is formed for kDepartureWindow: who leaves together is one event.
// - A place is given to a newcomer at once, or at the next commit, as --scale-up says; auto: at the
//   next commit if the job has committed in this round or the one before.
// - While recovering, a member of the round that attaches without workers proves that it can't be
//   completed: the rest is stopped at once. No commit is granted before the world is complete.
// - What a recovered round comes to (a charge, success) is judged after startup_quiet: those of a
//   world that was replaced may report first.
// - Before this machine has formed or recovered a round, the terms of an agent that knows more of
//   the job (a later round; that it was attached) prevail over those of whoever opened it.
// - A recovered round that stops waits for missing members until a lease after the rendezvous'
//   start, when they must have killed their workers; reconnect_timeout is for a world that runs.
#ifndef MUSTER_RENDEZVOUS_CORE_JOB_MACHINE_H_
#define MUSTER_RENDEZVOUS_CORE_JOB_MACHINE_H_

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"
#include "rendezvous/core/job_record.h"
#include "rendezvous/core/job_status.h"

namespace muster::rendezvous {

// ---- events --------------------------------------------------------------------------------

// A message came on a session. The first one on every session is Attach.
struct SessionMessage {
  SessionId session;
  AgentMessage message;
};

// The session's stream ended; the agent may re-attach on another one.
struct SessionEnded {
  SessionId session;
};

// The loop's timer: at or after NextWakeup(). Fed only after all events received before it.
struct TimePassed {};

// A person sends this node away (`muster drain`). Nothing if it isn't in the job.
struct NodeDrained {
  Incarnation incarnation;
};

// A node that was to join ends before it can attach.
struct NodeCannotStart {
  std::string node_name;
  std::string reason;  // for people: "the program \"x\" does not exist; check the path"
};

// The process that hosts this rendezvous has been told to stop: the job ends for everyone.
struct HostStopping {
  std::string reason;
  int exit_code = 0;
};

// The node that hosts this rendezvous was refused by its own job and won't join: the end of a job
// that is short of nodes, since it can't wait for a rendezvous that goes. What runs goes on.
struct HostRefused {
  std::string reason;
  int exit_code = 0;
};

using JobEvent = std::variant<SessionMessage, SessionEnded, TimePassed, NodeDrained,
                              NodeCannotStart, HostStopping, HostRefused>;

// What every step is given besides the event.
struct StepInput {
  Instant now;
  // Used up when this step forms a round.
  WorldId fresh_world_id;
  RoundKey fresh_round_key;
};

// ---- effects -------------------------------------------------------------------------------

struct SendMessage {
  SessionId session;
  RendezvousMessage message;
};

// Nothing more will be said on this session: end its stream after what was sent before.
struct EndSession {
  SessionId session;
};

// A round began: open its key-value scope.
struct RoundStarted {
  World world;
  int node_count = 0;
  int world_size = 0;
};

// What is to be kept of the job where there is a state directory.
struct KeepRecord {
  JobRecord record;
  // The effects after this one wait until that is durable.
  bool before_the_rest = false;
};

// A round is over: drop its keys and end every wait on them.
struct RoundOver {
  World world;
  std::string reason;
};

// A change of state worth a log line and a Watch event; the text names job, round and node.
struct Record {
  std::string text;
};

using JobEffect =
    std::variant<SendMessage, EndSession, RoundStarted, KeepRecord, RoundOver, Record>;

// ---- the machine ---------------------------------------------------------------------------

struct JobOptions {
  Duration lease = std::chrono::seconds(3);
  // How long an agent whose stream ended may take to re-attach before it counts as lost. A process
  // that was killed can't come back, so this bounds the recovery from a killed node.
  Duration reattach_grace = std::chrono::milliseconds(100);
  // How long nodes that want to go wait for a checkpoint that all ranks agree on.
  Duration checkpoint_patience = std::chrono::seconds(30);
  // How long a restarted rendezvous waits for a running world to be complete again.
  Duration reconnect_timeout = std::chrono::seconds(60);
  // No round is formed this long after the start, so that agents of a running world can report
  // first. Zero for --standalone, where nobody can have been there before.
  Duration startup_quiet = std::chrono::seconds(1);
  // What an earlier life of the rendezvous kept in --state-dir.
  JobRecord record{};
  // What is kept is still another one: to be kept before anything is said.
  bool record_is_new = false;
  // What forgives a node's losses besides a commit, and how long it is set aside at most
  // (node_losses.h).
  Duration good_uptime = std::chrono::seconds(60);
  Duration set_aside_for = std::chrono::minutes(10);
};

class JobMachine {
 public:
  // `started` is when the rendezvous process began to listen.
  JobMachine(std::string run_id, JobOptions options, Instant started);
  ~JobMachine();
  JobMachine(const JobMachine&) = delete;
  JobMachine& operator=(const JobMachine&) = delete;

  // Takes one event and returns what to do, in order. `now` never goes backwards.
  std::vector<JobEffect> Step(const StepInput& input, const JobEvent& event);

  // When TimePassed is due if nothing else happens; Never() when nothing is.
  Instant NextWakeup() const;

  JobState state() const;
  // True once the job has ended and no agent is attached any more.
  bool IsDone() const;
  // What a new machine of this run id is to begin with, if this agent opens the job anew: the job
  // IsDone() and ended with "run it again" (75), and the agent was never in it.
  std::optional<JobRecord> OpenedAnewBy(const Attach& attach) const;
  // True while nothing is known that a new machine of this run id wouldn't know: nobody is here, no
  // terms are set, and no round was ever heard of.
  bool IsBlank() const;
  JobStatus Status(Instant now) const;
  // Whether Status() names this agent; cheap however many there are.
  bool HasMember(const Incarnation& agent) const;

 private:
  class Rules;
  std::unique_ptr<Rules> rules_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_JOB_MACHINE_H_
