#include "examples/fashion_mnist/mlp.h"

#include <cmath>
#include <utility>

namespace fashion_mnist {

Mlp::Mlp(const std::vector<int>& sizes, uint64_t seed) {
  muster::RandomStream random(seed);
  for (size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    const std::string prefix = "layer" + std::to_string(layer + 1);
    Tensor weights{.name = prefix + ".weight", .values = Matrix(sizes[layer], sizes[layer + 1])};
    // He's variance for ReLU, 2 / inputs, of a uniform distribution.
    const float limit = std::sqrt(6.0F / static_cast<float>(sizes[layer]));
    for (Eigen::Index i = 0; i < weights.values.size(); ++i) {
      weights.values.data()[i] = (2 * random.Uniform() - 1) * limit;
    }
    parameters_.push_back(std::move(weights));
    parameters_.push_back({.name = prefix + ".bias", .values = Matrix::Zero(1, sizes[layer + 1])});
  }
  inputs_.resize(layer_count());
  masks_.resize(layer_count());
}

void Mlp::Apply(size_t layer, const Matrix& inputs, Matrix* outputs) const {
  outputs->noalias() = inputs * parameters_[2 * layer].values;
  outputs->rowwise() += parameters_[2 * layer + 1].values.row(0);
}

Matrix Mlp::Predict(const Matrix& inputs) const {
  Matrix values = inputs;
  Matrix scores;
  for (size_t layer = 0; layer < layer_count(); ++layer) {
    Apply(layer, values, &scores);
    values = scores.cwiseMax(0.0F);
  }
  return scores;
}

float Mlp::LossGradient(std::span<const uint8_t> labels, Matrix* scores) {
  // Plain loops: Eigen's sums may begin elsewhere where memory is aligned otherwise.
  const float scale = 1.0F / static_cast<float>(scores->rows());
  float loss = 0;
  for (Eigen::Index row = 0; row < scores->rows(); ++row) {
    float* score = scores->row(row).data();
    const float top = scores->row(row).maxCoeff();
    float sum = 0;
    for (Eigen::Index c = 0; c < scores->cols(); ++c) sum += std::exp(score[c] - top);
    const uint8_t label = labels[static_cast<size_t>(row)];
    loss += std::log(sum) + top - score[label];
    for (Eigen::Index c = 0; c < scores->cols(); ++c) {
      score[c] = (std::exp(score[c] - top) / sum - (c == label ? 1.0F : 0.0F)) * scale;
    }
  }
  return loss * scale;
}

float Mlp::TrainStep(const Matrix& inputs, std::span<const uint8_t> labels, float dropout,
                     muster::RandomStream& random, std::span<float* const> gradients,
                     const std::function<void(size_t)>& on_ready) {
  inputs_[0] = inputs;
  Matrix scores;
  for (size_t layer = 0; layer < layer_count(); ++layer) {
    Apply(layer, inputs_[layer], &scores);
    if (layer + 1 == layer_count()) break;
    // ReLU and dropout are one factor: 0, or what makes up for the dropped.
    Matrix& mask = masks_[layer];
    mask.resize(scores.rows(), scores.cols());
    for (Eigen::Index i = 0; i < scores.size(); ++i) {
      const bool is_kept = dropout == 0 || random.Uniform() >= dropout;
      mask.data()[i] = is_kept && scores.data()[i] > 0 ? 1 / (1 - dropout) : 0;
    }
    inputs_[layer + 1] = scores.cwiseProduct(mask);
  }
  const float loss = LossGradient(labels, &scores);

  Matrix& by_scores = scores;
  for (size_t layer = layer_count(); layer-- > 0;) {
    const Matrix& weights = parameters_[2 * layer].values;
    Eigen::Map<Matrix> by_weights(gradients[2 * layer], weights.rows(), weights.cols());
    by_weights.noalias() += inputs_[layer].transpose() * by_scores;
    on_ready(2 * layer);
    Eigen::Map<Matrix> by_biases(gradients[2 * layer + 1], 1, weights.cols());
    for (Eigen::Index row = 0; row < by_scores.rows(); ++row) by_biases += by_scores.row(row);
    on_ready(2 * layer + 1);
    if (layer == 0) break;
    const Matrix by_inputs = by_scores * weights.transpose();
    by_scores = by_inputs.cwiseProduct(masks_[layer - 1]);
  }
  return loss;
}

}  // namespace fashion_mnist
