// The agent's side of the channel to the workers on its node: lets in the workers of the current
// round, relays their key-value requests to the rendezvous, passes on what they report about steps
// and checkpoints, and tells them when the round is over. A malformed frame, a stranger or a stuck
// reader costs that connection and nothing else. Owned by the agent; thread-safe; one thread of its
// own, on which the observer is called (it must only enqueue).
//
//   service.OpenRound(...) before the workers are spawned; service.Abort(...) when the round ends.
//   The next OpenRound() closes what is left of its connections.
#ifndef MUSTER_AGENT_SERVER_WORKER_SERVICE_H_
#define MUSTER_AGENT_SERVER_WORKER_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/job_types.h"
#include "base/session_messages.h"
#include "base/worker_channel.h"
#include "rendezvous/client/rendezvous_client.h"

namespace muster::agent {

class WorkerServiceObserver {
 public:
  virtual ~WorkerServiceObserver() = default;
  virtual void OnShardReported(ShardReport report) = 0;
  virtual void OnCommitPublished(CommitDone done) = 0;
  // A worker answered a ping. `activity`: none on a connection that has reported no steps.
  virtual void OnWorkerAnswered(const World& world, LocalRank local_rank,
                                const std::optional<Activity>& activity) = 0;
  // Its last connection of this round was closed.
  virtual void OnWorkerLeft(const World& world, LocalRank local_rank) = 0;
  // A worker completed a step. Of several that came together only the last is told.
  virtual void OnStepReported(const World& world, LocalRank local_rank,
                              worker_channel::StepDone done) = 0;
  // Rank 0 saves after that step, and waits for AgreeOnCheckpoint().
  virtual void OnCheckpointAnnounced(const World& world, int64_t step) = 0;
  // A worker was told to save after that step.
  virtual void OnCheckpointKnown(const World& world, LocalRank local_rank, int64_t step) = 0;
  // A worker of the round has opened a connection; it may open several.
  virtual void OnHello(RoundId round, LocalRank local_rank) = 0;
};

class WorkerService {
 public:
  struct Round {
    rendezvous::RoundScope scope;
    // By worker id (MUSTER_WORKER_ID): what that worker is told when it says Hello.
    std::map<std::string, worker_channel::Welcome> welcomes;
  };

  struct Answer {
    World world;
    Rank rank;
    Commit commit;
    bool is_granted = false;
    std::string reason;
  };

  // Both must outlive the service. Internal: the socket can't be made.
  static absl::StatusOr<std::unique_ptr<WorkerService>> Start(rendezvous::RendezvousClient* client,
                                                              WorkerServiceObserver* observer,
                                                              const Clock* clock = &SystemClock());
  ~WorkerService();
  WorkerService(const WorkerService&) = delete;
  WorkerService& operator=(const WorkerService&) = delete;

  // The abstract socket's name, without the leading NUL byte. Unguessable.
  const std::string& socket_name() const;

  // From now on the workers of this round are let in, and no others; earlier connections are
  // closed.
  void OpenRound(Round round);
  // Tells every worker of the round, also one that comes later, that it is over; requests that wait
  // are answered kAborted. Nothing happens for another world than the current one.
  void Abort(const World& world, Rank culprit, const std::string& reason);
  // Asks every worker of the round for a sign of life.
  void Ping(const World& world);
  // Asks rank 0, if its worker is here, to name a step to save after.
  void AskForCheckpoint(const World& world);
  // Tells every worker that reports steps to save after this one.
  void TellCheckpoint(const World& world, int64_t step);
  // Every rank knows the step that rank 0 named: it may go on.
  void AgreeOnCheckpoint(const World& world);
  // Answers the oldest ShardDone or CommitPublished of that rank for that commit.
  void AnswerCommit(const Answer& answer);

 private:
  class Loop;
  explicit WorkerService(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_SERVER_WORKER_SERVICE_H_
