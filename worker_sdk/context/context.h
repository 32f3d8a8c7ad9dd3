// Who this worker is, and its channel to the agent that started it. Made once, at the start of
// main:
//
//   auto context = muster::Context::Create();
//   if (!context.ok()) { std::cerr << context.status().message() << "\n"; return 1; }
//
// Outside muster (no RANK in the environment) it is a world of one, so that the same program runs
// without a launcher. Under another launcher (RANK set, no agent) Create() fails with the remedy.
// Thread-safe. One control thread, which only reads the channel.
#ifndef MUSTER_WORKER_SDK_CONTEXT_CONTEXT_H_
#define MUSTER_WORKER_SDK_CONTEXT_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/job_types.h"
#include "worker_sdk/context/abort_signal.h"
#include "worker_sdk/context/peer_waits.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/context/store.h"

namespace muster {

class Context {
 public:
  // Errors: kFailedPrecondition (started by something that isn't muster), kUnavailable (the agent
  // doesn't answer), kInvalidArgument (a variable that doesn't make sense, named).
  static Result<std::unique_ptr<Context>> Create();
  virtual ~Context() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // Its place among the workers of its node, with --virtual-local-rank too.
  virtual int local_rank() const = 0;
  // Which of the accelerators that this process sees is its own, for cudaSetDevice() and the like:
  // LOCAL_RANK of the environment at Create(). That is local_rank(), but with --virtual-local-rank
  // 0, as the process then sees its own device alone.
  virtual int device_index() const = 0;
  virtual int local_world_size() const = 0;
  // Rounds formed before this one; 0 at the first start.
  virtual int attempt() const = 0;
  // Worker failures charged to --max-restarts so far.
  virtual int restarts_charged() const = 0;
  // False in a world of one that no launcher started.
  virtual bool is_launched() const = 0;

  virtual const World& world() const = 0;
  virtual const RoundKey& key() const = 0;
  // Address at which other nodes reach this one.
  virtual const std::string& address() const = 0;
  // Newest checkpoint that the job committed before this round.
  virtual const std::optional<Commit>& resume() const = 0;

  // Shared by the workers of this round. Lives as long as the context.
  virtual Store& store() = 0;
  // Raised by the agent when the round is over. Lives as long as the context.
  virtual AbortSignal& abort_signal() = 0;
  // Where groups note what they wait for. Lives as long as the context.
  virtual PeerWaits& peer_waits() = 0;

  // To be called by every rank after each optimizer step that is complete on its device; one of the
  // two, in one thread. Steps only grow. Both tell the agent that this rank makes progress, never
  // wait for it, and cost about a microsecond.
  //
  //   if (context.ShouldSave(step) || step % 1000 == 0) store.Save(...);
  //
  // ShouldSave also says whether a node wants to go (preemption, `muster drain`) and all ranks have
  // agreed to save after this step: true on every rank at the same step, once, and each of them
  // must then save. Only on rank 0 it may take some milliseconds, once, while the ranks agree.
  virtual void StepDone(int64_t step) = 0;
  [[nodiscard]] virtual bool ShouldSave(int64_t step) = 0;

  // Tells the rendezvous that this rank's shard of a checkpoint is durable. On rank 0 it blocks
  // until the commit is granted, on others until the report is acknowledged; kAborted: the round is
  // over, publish nothing. In a world of one it is granted at once.
  virtual Status ReportShard(const Commit& commit, int shard_count) = 0;
  // Rank 0 has published the checkpoint; returns when the rendezvous has noted it.
  virtual Status ReportCommit(const Commit& commit) = 0;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_CONTEXT_H_
