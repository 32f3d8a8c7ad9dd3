// One job as the rendezvous hosts it: the machine that decides, and the key-value table of its
// current round with the calls that wait there. It performs the machine's effects in order, through
// a JobOutlet; what it says after a record that must be durable first is held back until it is.
// Used by whoever turns the loop (rendezvous/server/rendezvous_loop.h); answers of calls are run
// there too and must only enqueue.
#ifndef MUSTER_RENDEZVOUS_SERVER_HOSTED_JOB_H_
#define MUSTER_RENDEZVOUS_SERVER_HOSTED_JOB_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"
#include "rendezvous/core/job_machine.h"
#include "rendezvous/core/key_value_table.h"

namespace muster::rendezvous {

// One SetKey, GetKey or Barrier call; given by the loop, never used twice.
using CallId = StrongInt<struct CallTag, uint64_t>;

// How a call ends; exactly once. The value is GetKey's, else empty.
using CallAnswer = std::function<void(absl::StatusOr<std::string>)>;

// One record that is to be kept; later ones are greater.
using KeepId = StrongInt<struct KeepTag, uint64_t>;

struct BarrierCall {
  std::string name;
  int participant = 0;
  int count = 0;
  Duration wait{0};
};

// What a job does to the world outside.
class JobOutlet {
 public:
  virtual ~JobOutlet() = default;
  virtual void Send(SessionId session, const RendezvousMessage& message) = 0;
  virtual void End(SessionId session) = 0;
  // A round begins; before any agent is told of it.
  virtual void RoundBegins(const std::string& run_id) = 0;
  // Lets the record be kept where there is a state directory. True if `keep` will be given to
  // HostedJob::Kept() when it is; false if there is nothing to wait for.
  virtual bool Keep(const std::string& run_id, KeepId keep, const JobRecord& record) = 0;
  // A change of state, for the log and for watchers.
  virtual void Report(const std::string& run_id, RoundId round, const std::string& text) = 0;
};

class HostedJob {
 public:
  // `outlet` must outlive the job. `started` is when the rendezvous began to listen.
  HostedJob(std::string run_id, const JobOptions& options, Instant started, JobOutlet* outlet);
  // Calls that still wait are answered with Unavailable.
  ~HostedJob();
  HostedJob(const HostedJob&) = delete;
  HostedJob& operator=(const HostedJob&) = delete;

  void Step(Instant now, const JobEvent& event);
  // The record is durable, or the disk has refused it: what waited for that is said.
  void Kept(KeepId keep);
  // What is due at `now`: the machine's timer, and calls whose wait is over.
  void Tick(Instant now);
  // When Tick() is due if nothing else happens.
  Instant NextWakeup() const;

  // Codes: Aborted (the scope's round is over), Unavailable (it isn't known here, or its agent
  // isn't: a rendezvous that has come back hears the agents' calls before their Attach),
  // InvalidArgument, ResourceExhausted; DeadlineExceeded and NotFound as RendezvousClient says.
  void SetKey(const RoundScope& scope, const std::string& key, std::string value,
              const CallAnswer& answer);
  void GetKey(Instant now, CallId call, const RoundScope& scope, const std::string& key,
              Duration wait, CallAnswer answer);
  void Barrier(Instant now, CallId call, const RoundScope& scope, const BarrierCall& barrier,
               CallAnswer answer);
  // The caller has gone: its answer is dropped. Nothing if the call has ended.
  void CancelCall(CallId call);

  const JobMachine& machine() const { return machine_; }
  // Whether a node ever asked for this job in this life of the rendezvous.
  bool is_claimed() const { return is_claimed_; }
  // When the job was first seen to be done; none while it goes on.
  std::optional<Instant> done_since() const { return done_since_; }

 private:
  struct Waiting {
    CallId call;
    CallAnswer answer;
  };

  struct Utterance {
    SessionId session;
    // None: the session's end.
    std::optional<RendezvousMessage> message;
  };
  // What may be said only when a record is durable: nobody may build on a commit, or be told of an
  // end, that a rendezvous which comes back wouldn't know.
  struct Held {
    KeepId keep;
    Instant until;
    std::vector<Utterance> utterances;
  };

  void Perform(Instant now, const JobEffect& effect);
  void Say(SessionId session, std::optional<RendezvousMessage> message);
  void ReleaseHeld();
  void CloseRound(const absl::Status& why);
  void NoteDeparture(SessionId session);
  // OK if the scope names the current round and an agent that is attached, or was lately.
  absl::Status CheckScope(const RoundScope& scope) const;
  void EndWaits(const std::vector<WaitId>& waits, const absl::StatusOr<std::string>& answer);

  const std::string run_id_;
  // A disk that doesn't answer must not cost the agents' leases.
  const Duration longest_hold_;
  JobOutlet* const outlet_;
  JobMachine machine_;
  // Drawn anew whenever a round has used them.
  StepInput step_input_;
  // Who is attached by which session, and who has been since the current round began: only these
  // may use the round's table.
  std::map<SessionId, Incarnation> sessions_;
  std::set<Incarnation> incarnations_;
  // Of sessions that have ended in this round, oldest first: an agent that is between two streams
  // may still use the table, but not every one that ever came.
  std::deque<Incarnation> departed_;
  // Of the round that began last in this life of the rendezvous; round 0 before the first.
  World world_;
  // None when that round is over.
  std::optional<KeyValueTable> table_;
  std::map<WaitId, Waiting> waiting_;
  std::map<CallId, WaitId> wait_of_;
  KeepId last_keep_;
  std::optional<Held> held_;
  // It didn't in time, so nobody waits for it until it does.
  bool does_disk_answer_ = true;
  bool is_claimed_ = false;
  std::optional<Instant> done_since_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_HOSTED_JOB_H_
