// Trains the model on all ranks of a group: data-parallel, with checkpoints. Killed anywhere and
// started again in a world of the same size, it ends with the same bits as an undisturbed run.
// One object per rank; the calls are collective. Borrows all it is given. One thread at a time.
#ifndef MUSTER_EXAMPLES_FASHION_MNIST_TRAINER_H_
#define MUSTER_EXAMPLES_FASHION_MNIST_TRAINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/fashion_mnist/image_set.h"
#include "examples/fashion_mnist/mlp.h"
#include "examples/fashion_mnist/options.h"
#include "examples/fashion_mnist/report.h"
#include "worker_sdk/muster.h"

namespace fashion_mnist {

class Trainer {
 public:
  // Where one runs and on what; outlives the trainer.
  struct Surroundings {
    muster::Context& context;
    muster::ProcessGroup& group;
    const ImageSet& training;
    const ImageSet& test;
    Report& report;
  };

  // Makes the model, equal on all ranks, and goes on from the newest checkpoint, if there is one.
  static muster::Result<std::unique_ptr<Trainer>> Create(const Surroundings& surroundings,
                                                         const Options& options);

  // Trains until the last epoch ends, or Options::stop_after.
  muster::Status Run();
  // Share of the test images that the model gets right.
  muster::Result<double> Evaluate();

  // Step of the checkpoint that Create() went on from.
  const std::optional<int64_t>& resumed_step() const { return resumed_step_; }
  int64_t step() const { return step_; }
  // Of the bits of all parameters.
  std::string Fingerprint();

 private:
  Trainer(const Surroundings& surroundings, const Options& options);
  muster::Status Prepare();
  muster::Status Resume();
  muster::Status TrainOn(const std::vector<uint64_t>& batch);
  muster::Status FinishEpoch();
  // Saves the state; a failure is only said, unless the round is over.
  muster::Status Save();

  float LearningRate() const;
  bool IsStopped() const { return options_.stop_after > 0 && step_ >= options_.stop_after; }

  Surroundings surroundings_;
  Options options_;
  Mlp model_;
  // By parameter.
  std::vector<std::vector<float>> momenta_;
  std::vector<float*> gradients_;
  std::unique_ptr<muster::Reducer> reducer_;
  muster::DistributedSampler sampler_;
  // This rank's, for dropout.
  muster::RandomStream random_;
  std::unique_ptr<muster::CheckpointStore> store_;

  // Completed optimizer steps, over all lives of the run.
  int64_t step_ = 0;
  std::optional<int64_t> resumed_step_;
  // Of this rank's steps of the epoch, as far as this life made them.
  double loss_sum_ = 0;
  int64_t loss_count_ = 0;
};

}  // namespace fashion_mnist

#endif  // MUSTER_EXAMPLES_FASHION_MNIST_TRAINER_H_
