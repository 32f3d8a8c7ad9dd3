// Averages gradients over all ranks while the backward pass still runs. Each step:
//
//   reducer->ZeroGradients();
//   backward pass: add each gradient into reducer->Gradient(i), then reducer->MarkReady(i)
//   reducer->Finish();               // now Gradient(i) holds the average; optimizer step
//
// Parameters are given in the order of the forward pass. Their gradients live in buckets, which are
// the memory that is sent: nothing is copied. A bucket leaves as soon as it and all before it are
// complete, so that all ranks send in the same order, whatever the order of marking. Gradients are
// for floating point. The group outlives the reducer. Used by one thread.
#ifndef MUSTER_WORKER_SDK_DDP_REDUCER_H_
#define MUSTER_WORKER_SDK_DDP_REDUCER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/status.h"
#include "worker_sdk/ddp/bucket_plan.h"

namespace muster {

struct Parameter {
  // For messages; should be unique.
  std::string name;
  // The values, owned by the caller; overwritten once, by rank 0's, in Create().
  void* data = nullptr;
  size_t count = 0;
  DataType type = DataType::kF32;
};

struct ReducerOptions {
  BucketLimits limits;
  // Told when a bucket leaves (its index): for traces and tests.
  std::function<void(size_t bucket)> on_launch;
};

class Reducer {
 public:
  // Collective: all ranks call it with the same names, counts and types, else every rank gets
  // kFailedPrecondition naming the first difference. Then rank 0's values replace everybody's.
  // Errors: kInvalidArgument (integers; no data), kResourceExhausted (no memory, on all ranks,
  // naming the rank), and those of the group.
  static Result<std::unique_ptr<Reducer>> Create(ProcessGroup& group,
                                                 std::vector<Parameter> parameters,
                                                 ReducerOptions options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  size_t parameter_count() const { return parameters_.size(); }
  const std::vector<Bucket>& buckets() const { return plan_; }
  // Where the gradient of parameter `index` goes: the same address for the reducer's life, zero at
  // first. Belongs to the reducer from MarkReady(index) until Finish().
  Buffer Gradient(size_t index) const;
  void ZeroGradients();

  // The gradient is complete. kFailedPrecondition: it was marked before in this step;
  // kInvalidArgument: no such parameter.
  Status MarkReady(size_t index);
  // Waits for all averages; collective. kFailedPrecondition on every rank if any rank left a
  // parameter unmarked (the message names them); the gradients are of no use then, and the next
  // step may go on after ZeroGradients(). Other errors are those of the group and final.
  Status Finish();

  // While it lives, gradients only accumulate: MarkReady() and Finish() communicate nothing. All
  // ranks open it for the same steps.
  class NoSync {
   public:
    explicit NoSync(Reducer& reducer) : reducer_(reducer) { ++reducer_.no_sync_depth_; }
    ~NoSync() { --reducer_.no_sync_depth_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Reducer& reducer_;
  };

 private:
  struct BucketState;

  Reducer(ProcessGroup& group, std::vector<Parameter> parameters, ReducerOptions options);
  // The parts of Create().
  Status CheckParameters() const;
  Status Allocate();
  Status BroadcastParameters();

  // Sends every bucket that is complete and whose turn it is.
  void LaunchComplete();
  void Launch(size_t bucket);
  // Collective: the parameters that any rank left unmarked, in words.
  Status NameMissing(const std::vector<char>& marked);

  ProcessGroup& group_;
  const std::vector<Parameter> parameters_;
  const ReducerOptions options_;
  std::vector<Bucket> plan_;
  std::vector<std::unique_ptr<BucketState>> states_;
  // By parameter: its bucket, its byte offset there, and whether it is marked in this step.
  std::vector<size_t> bucket_of_;
  std::vector<size_t> offset_of_;
  std::vector<char> marked_;
  // Buckets 0 .. next_bucket_-1 have left.
  size_t next_bucket_ = 0;
  int no_sync_depth_ = 0;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DDP_REDUCER_H_
