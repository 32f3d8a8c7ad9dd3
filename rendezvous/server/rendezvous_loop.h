// The one loop that owns every job of a rendezvous. Streams and calls enqueue events from gRPC's
// threads; the loop feeds them to the jobs one at a time, keeps the only timer, and performs what
// the jobs decide. The instant of a batch is read before the batch is taken, so every event that
// was received by then is handled before a lease is found to be over.
//
// It is turned by one thread at a time: by the one that enqueues where nobody turns it yet, else by
// the one that does, which comes to the new event before it lets go; and by a thread of its own
// when a timer is due. So an event needs no second thread to wake up, which for the heartbeats of
// thousands of agents is most of what they cost.
//
// Thread-safe; nobody may enqueue while holding a lock that a sink or an answer takes. Sinks and
// answers are called by whoever turns the loop (or, after Stop(), by its own thread) and must only
// enqueue. No gRPC here: rendezvous_service.h is the way in from the network.
#ifndef MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_LOOP_H_
#define MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_LOOP_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/mutex.h"
#include "base/session_messages.h"
#include "rendezvous/core/job_machine.h"
#include "rendezvous/server/hosted_job.h"
#include "rendezvous/server/job_keeper.h"

namespace muster::rendezvous {

// The loop's end of an agent's stream. Methods may be called after the stream has ended; they do
// nothing then.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  virtual void Send(const RendezvousMessage& message) = 0;
  // The last message was handled: the next one may be read. Until then none is, which bounds what
  // one agent can have waiting in the loop.
  virtual void ReadNext() = 0;
  // Ends the stream after all that was sent.
  virtual void End() = 0;
  // Ends the stream now.
  virtual void Cut(const absl::Status& why) = 0;
};

struct WatchedEvent {
  std::string run_id;
  RoundId round;
  int64_t wall_time_ms = 0;
  std::string text;
  // JobStateName() after it.
  std::string state;
};

class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // From now on nothing is missed.
  virtual void Begun() = 0;
  virtual void Send(const WatchedEvent& event) = 0;
  virtual void Cut(const absl::Status& why) = 0;
};

using WatchId = StrongInt<struct WatchTag, uint64_t>;

struct RendezvousLoopOptions {
  JobOptions job{};
  Duration retention = std::chrono::minutes(10);
  // Null: nothing of the jobs is kept.
  std::unique_ptr<JobKeeper> jobs;
  // Called when a round of the job `watched_job` begins, before any agent is told of it; by whoever
  // turns the loop, and nothing else is handled meanwhile. May be empty.
  std::function<void()> on_round{};
  std::string watched_job{};
  // Must outlive the loop.
  const Clock* clock = &SystemClock();
};

class RendezvousLoop : private JobOutlet {
 public:
  explicit RendezvousLoop(RendezvousLoopOptions options);
  ~RendezvousLoop() override;

  // Cuts every stream with Unavailable, answers every call with Cancelled and joins the thread.
  // Whatever comes later is answered the same way. May be called more than once.
  void Stop();

  // A name for a stream that is about to be opened.
  SessionId NewSessionId() { return SessionId(++last_id_); }
  // A stream's first message came. The sinks are shared: the stream and the loop both refer to one,
  // and either may end first.
  void OpenSession(SessionId id, Attach attach, const std::shared_ptr<SessionSink>& sink);
  void TakeMessage(SessionId session, AgentMessage message);
  // To be called exactly once for each session, when its stream has ended for whatever reason.
  void SessionEnded(SessionId session);

  CallId SetKey(RoundScope scope, std::string key, std::string value, const CallAnswer& answer);
  CallId GetKey(RoundScope scope, std::string key, Duration wait, const CallAnswer& answer);
  CallId Barrier(RoundScope scope, BarrierCall barrier, const CallAnswer& answer);
  // The caller has gone.
  void CancelCall(const std::string& run_id, CallId call);

  // Of one job, of all if `run_id` is absent, of none if it is empty. NotFound: no such job.
  using StatusAnswer = std::function<void(absl::StatusOr<std::vector<JobStatus>>)>;
  void GetStatus(const std::optional<std::string>& run_id, const StatusAnswer& answer);
  // Drains a node by name or address: of that job, of every job if `run_id` is absent. Answers at
  // once, or with `wait` when its agents are gone. Codes as in the proto.
  struct DrainResult {
    // How many were told.
    int agents = 0;
    // One of them hosts this rendezvous, so its process stays until the jobs have ended.
    bool host_stays = false;
  };
  using DrainAnswer = std::function<void(absl::StatusOr<DrainResult>)>;
  struct DrainOrder {
    std::optional<std::string> run_id;
    std::string node;
    Duration wait{0};
  };
  CallId Drain(DrainOrder order, const DrainAnswer& answer);
  // The caller has gone: its answer is dropped, the nodes leave all the same.
  void CancelDrain(CallId call);
  WatchId Watch(const std::optional<std::string>& run_id, const std::shared_ptr<WatchSink>& sink);
  void Unwatch(WatchId watch);

  // Lets those who wait for this node in the job know. NotFound: no such job, or nobody is in it
  // yet.
  void CannotStart(const std::string& run_id, NodeCannotStart node, const CallAnswer& answer);

  void HostStopping(const std::string& reason, int exit_code);
  // As RendezvousServer::HostRefused.
  void HostRefused(const std::string& reason, int exit_code);
  // As RendezvousServer::WaitUntilIdle.
  bool WaitUntilIdle(Duration most, Duration linger);
  // Looks at the clock again: for tests that own it.
  void Poke();

 private:
  static constexpr size_t kMaxWatchers = 256;

  struct Session {
    HostedJob* job = nullptr;
    std::shared_ptr<SessionSink> sink;
    // The job has nothing more to say, nor to hear.
    bool is_ending = false;
  };
  struct Watcher {
    std::optional<std::string> run_id;
    std::shared_ptr<WatchSink> sink;
  };
  struct Draining {
    CallId call;
    std::string node;
    // Agents that aren't gone yet, by job.
    std::vector<std::pair<std::string, Incarnation>> agents;
    int count = 0;
    bool has_host = false;
    Instant until;
    DrainAnswer answer;
  };
  using Task = std::function<void(Instant now)>;

  // False if the loop has stopped, or if so many tasks wait that one of these is too many; the task
  // is dropped then.
  bool Enqueue(Task task, size_t most_waiting = SIZE_MAX);
  CallId EnqueueCall(const std::string& run_id, const CallAnswer& answer,
                     std::function<void(Instant, HostedJob&, CallId, CallAnswer)> call);
  void Run();
  // Handles what waits, and all that comes meanwhile. The caller has set is_turning_. With
  // `looks_around` it attends to what is due though its own bookkeeping knows of nothing.
  void Turn(bool looks_around);
  void StepJob(Instant now, HostedJob& job, const JobEvent& event);
  // A job has changed: what is due for it next, and when.
  void NoteDue(const HostedJob& job);
  void Attend(Instant now);
  void Open(Instant now, SessionId id, Attach attach, const std::shared_ptr<SessionSink>& sink);
  HostedJob* JobFor(const std::string& run_id);
  // In place of the job of that run id, if there is one.
  HostedJob* Host(const std::string& run_id, const JobOptions& options);
  // When nothing is known of the job any more.
  Instant ForgottenAt(const HostedJob& job) const;
  void DropSessionsOf(const HostedJob& job);
  bool IsAbandoned(const HostedJob& job) const;
  static absl::Status ShuttingDown();
  void StartDrain(Instant now, CallId call, const DrainOrder& order, DrainAnswer answer);
  DrainResult ResultOf(const Draining& drain) const;
  void AnswerDrains(Instant now);
  void PublishIdleness(Instant now);
  Instant NextWakeup() const;
  void StopAll();

  void Send(SessionId session, const RendezvousMessage& message) override;
  void End(SessionId session) override;
  void RoundBegins(const std::string& run_id) override;
  bool Keep(const std::string& run_id, KeepId keep, const JobRecord& record) override;
  void Report(const std::string& run_id, RoundId round, const std::string& text) override;

  RendezvousLoopOptions options_;
  const Instant started_;
  std::atomic<uint64_t> last_id_{0};

  // For whoever turns the loop, alone.
  Instant now_;
  // Nothing is due by the time alone before this; something may be at it.
  Instant next_due_ = Instant::Never();
  // What WaitUntilIdle() was last told.
  std::optional<size_t> published_sessions_;
  std::map<std::string, std::unique_ptr<HostedJob>> jobs_;
  std::unordered_map<SessionId, Session> sessions_;
  // Ending sessions by the instant at which they are cut if they haven't drained; oldest first.
  std::deque<std::pair<Instant, SessionId>> ending_;
  std::map<WatchId, Watcher> watchers_;
  std::vector<Draining> draining_;
  // Calls of WaitUntilIdle() that wait for the next look at idleness.
  std::vector<std::shared_ptr<bool>> asked_;

  base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Task> tasks_ MUSTER_GUARDED_BY(mutex_);
  bool is_turning_ MUSTER_GUARDED_BY(mutex_) = false;
  // As next_due_, for the loop's own thread, and until when that one sleeps.
  Instant wakeup_ MUSTER_GUARDED_BY(mutex_) = Instant::Never();
  Instant sleeps_until_ MUSTER_GUARDED_BY(mutex_) = Instant::Never();
  bool poked_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  // For WaitUntilIdle(): open sessions, and whether a member of a job is away.
  size_t open_sessions_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool is_someone_away_ MUSTER_GUARDED_BY(mutex_) = false;
  std::condition_variable_any idleness_;
  std::thread thread_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_RENDEZVOUS_LOOP_H_
