// The rules of one node: when its workers start, when they are stopped and how hard, when contact
// with the rendezvous is given up, and with what the agent ends. Pure: an event goes in, effects
// come out, time and fresh ids are arguments. One loop thread owns a machine (agent/agent_loop.h).
//
//   Connecting ──attached──► Waiting ──StartRound──► Running ──all exit 0──► Succeeded
//       ▲                      ▲                        │ failure, StopRound      │
//       │ contact lost         │ StopDone sent          ▼                         ▼
//       └── (any state)        └──────────────────── Stopping              JobEnded ─► Ended
#ifndef MUSTER_AGENT_CORE_AGENT_MACHINE_H_
#define MUSTER_AGENT_CORE_AGENT_MACHINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/core/agent_events.h"  // IWYU pragma: export
#include "agent/core/hang_events.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::agent {

struct StepInput {
  Instant now;
  // Used up when the agent has to come back as a newcomer.
  Incarnation fresh_incarnation;
};

// ---- effects -------------------------------------------------------------------------------

// Open a stream to the rendezvous (an earlier one is dropped).
struct Connect {};
struct Disconnect {};

// Make a plain connection to the endpoint, and drop it: EndpointProbed says how that went, in a
// fraction of a second.
struct ProbeEndpoint {};

// The shell fills in candidate ports.
struct SendToRendezvous {
  AgentMessage message;
};

struct SpawnGroup {
  StartRound place;
};

struct StopGroup {
  RoundId round;
  int first_signal = 15;
  Duration grace{0};
};

// Push to the SDK of every local worker: collectives end now with PeerLost{culprit, reason}.
struct AbortCollectives {
  World world;
  Rank culprit{-1};
  std::string reason;
};

// Let the guardian kill everything unless renewed before `deadline`.
struct RenewDeadline {
  Instant deadline;
};

// The answer to a local worker's ShardReport or CommitDone, exactly one for each: granted, or not
// for `reason`. A rank's answers for one commit come in the order of its requests.
struct AnswerCommit {
  World world;
  Rank rank;
  Commit commit;
  bool is_granted = false;
  std::string reason;
};

// Ask rank 0's worker, which is on this node, to name a step to save after.
struct AskForCheckpoint {
  World world;
};
// Tell every local worker that reports steps to save after this one; each answers with
// WorkerKnowsCheckpoint.
struct TellCheckpoint {
  World world;
  int64_t step = 0;
};
// Every rank knows the step that rank 0's worker announced: it goes on.
struct AgreeOnCheckpoint {
  World world;
};

// One line for the person who watches. Each differs from the one before.
struct Show {
  std::string text;
};

// The agent ends with this. Workers are gone, or given up on.
struct End {
  Verdict verdict;
};

using AgentEffect =
    std::variant<Connect, Disconnect, ProbeEndpoint, SendToRendezvous, SpawnGroup, StopGroup,
                 PingWorkers, LookAtHungWorker, KillWorker, AbortCollectives, RenewDeadline,
                 AnswerCommit, AskForCheckpoint, TellCheckpoint, AgreeOnCheckpoint, Show, End>;

// ---- the machine ---------------------------------------------------------------------------

// --lost-contact: how long workers live when contact with the rendezvous is lost. After the lease
// the others may go on without this node, so two worlds may then run side by side.
enum class LostContact {
  // Until the lease ends; beyond it while nobody can have replaced this node (contact.h), or if all
  // of its workers are SDK workers: their data plane and their commits are fenced by the round.
  kAuto,
  // Until the reconnect timeout, whatever they are: for programs that do no harm in two worlds.
  kGoOn,
  // Until the lease ends.
  kStop,
};

struct AgentOptions {
  // What to attach with; `incarnation`, `running` and `highest_round` are kept by the machine.
  Attach attach;
  // For messages: "10.0.0.1:29400".
  std::string endpoint;
  Duration shutdown_timeout = std::chrono::seconds(30);
  // Grace after the loss of a peer: a worker blocked in a collective can't handle SIGTERM.
  Duration lost_peer_grace{0};
  // How long to try to reach the rendezvous at the start, and again after contact was lost.
  Duration join_timeout = std::chrono::seconds(600);
  Duration reconnect_timeout = std::chrono::seconds(60);
  LostContact lost_contact = LostContact::kAuto;
  // How long a worker may complete no step after one, by the SDK's word; 0: for ever.
  Duration hang_timeout{0};
  // Whether to say what a second signal does. Not where another process passes the user's signals
  // on to several agents: what it does to the job only that one can say.
  bool explains_signals = true;
};

class AgentRules;

class AgentMachine {
 public:
  AgentMachine(AgentOptions options, Incarnation incarnation, Instant started);
  ~AgentMachine();
  AgentMachine(const AgentMachine&) = delete;
  AgentMachine& operator=(const AgentMachine&) = delete;

  // The first effects: connect.
  std::vector<AgentEffect> Start();
  // Takes one event and returns what to do, in order. `now` never goes backwards. After End nothing
  // more comes out.
  std::vector<AgentEffect> Step(const StepInput& input, const AgentEvent& event);
  Instant NextWakeup() const;

  // Of the current life; changes when the agent was superseded.
  Incarnation incarnation() const;
  bool has_ended() const;

 private:
  std::unique_ptr<AgentRules> rules_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_AGENT_MACHINE_H_
