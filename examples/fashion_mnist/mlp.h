// A multilayer perceptron: fully connected layers with ReLU and dropout between them, and a softmax
// cross-entropy at the end. Its arithmetic is one thread's and in a fixed order, so that equal
// parameters and batches give equal bits. One thread at a time.
#ifndef MUSTER_EXAMPLES_FASHION_MNIST_MLP_H_
#define MUSTER_EXAMPLES_FASHION_MNIST_MLP_H_

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "worker_sdk/muster.h"

namespace fashion_mnist {

// A row for each sample.
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

class Mlp {
 public:
  // One layer's weights (inputs x outputs) or biases (1 x outputs).
  struct Tensor {
    std::string name;
    Matrix values;
    size_t count() const { return static_cast<size_t>(values.size()); }
  };

  // `sizes`: inputs, hidden layers, classes; at least two. Equal seeds give equal weights.
  Mlp(const std::vector<int>& sizes, uint64_t seed);

  // In the order of the forward pass: weights and biases of each layer.
  std::vector<Tensor>& parameters() { return parameters_; }

  // The classes' scores for each row of `inputs`, without dropout.
  Matrix Predict(const Matrix& inputs) const;

  // Forward and backward pass of one batch; returns its mean loss. Adds the gradient of parameter i
  // to `gradients[i]` and calls `on_ready(i)`, the last layer's first, as soon as it is complete.
  // Each hidden value is dropped with probability `dropout`, as `random` says.
  float TrainStep(const Matrix& inputs, std::span<const uint8_t> labels, float dropout,
                  muster::RandomStream& random, std::span<float* const> gradients,
                  const std::function<void(size_t)>& on_ready);

 private:
  size_t layer_count() const { return parameters_.size() / 2; }
  // Scores of layer `layer` for its inputs.
  void Apply(size_t layer, const Matrix& inputs, Matrix* outputs) const;
  // Turns `scores` into the gradient of the mean loss by the scores; returns that loss.
  static float LossGradient(std::span<const uint8_t> labels, Matrix* scores);

  std::vector<Tensor> parameters_;
  // Of the running step: inputs of each layer, and what hidden values were multiplied by.
  std::vector<Matrix> inputs_;
  std::vector<Matrix> masks_;
};

}  // namespace fashion_mnist

#endif  // MUSTER_EXAMPLES_FASHION_MNIST_MLP_H_
