#include "examples/fashion_mnist/mlp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fashion_mnist {
namespace {

using muster::RandomStream;

struct Batch {
  Matrix inputs;
  std::vector<uint8_t> labels;
};

Batch RandomBatch(int samples, int inputs, int classes, uint64_t seed) {
  RandomStream random(seed);
  Batch batch{.inputs = Matrix(samples, inputs), .labels = {}};
  for (Eigen::Index i = 0; i < batch.inputs.size(); ++i) {
    batch.inputs.data()[i] = random.Uniform();
  }
  for (int i = 0; i < samples; ++i) {
    batch.labels.push_back(static_cast<uint8_t>(random.Below(static_cast<uint64_t>(classes))));
  }
  return batch;
}

// A step's loss, gradients and the order in which they became ready.
struct Step {
  float loss = 0;
  std::vector<std::vector<float>> gradients;
  std::vector<size_t> ready;

  Step(Mlp& model, const Batch& batch, float dropout, uint64_t seed) {
    std::vector<float*> pointers;
    for (const Mlp::Tensor& tensor : model.parameters()) {
      pointers.push_back(gradients.emplace_back(tensor.count()).data());
    }
    RandomStream random(seed);
    loss = model.TrainStep(batch.inputs, batch.labels, dropout, random, pointers,
                           [this](size_t index) { ready.push_back(index); });
  }
};

// Dropout too: with the same seed the same values are dropped.
TEST(Mlp, GradientsAreThoseOfFiniteDifferences) {
  for (const float dropout : {0.0F, 0.3F}) {
    Mlp model({6, 8, 7, 4}, 1);
    const Batch batch = RandomBatch(5, 6, 4, 2);
    const Step step(model, batch, dropout, 3);
    for (size_t p = 0; p < model.parameters().size(); ++p) {
      Mlp::Tensor& tensor = model.parameters()[p];
      for (Eigen::Index i = 0; i < tensor.values.size(); ++i) {
        constexpr float kShift = 1e-2F;
        float& value = tensor.values.data()[i];
        const float before = value;
        value = before + kShift;
        const float above = Step(model, batch, dropout, 3).loss;
        value = before - kShift;
        const float below = Step(model, batch, dropout, 3).loss;
        value = before;
        const float expected = (above - below) / (2 * kShift);
        EXPECT_NEAR(step.gradients[p][static_cast<size_t>(i)], expected, 4e-3F)
            << tensor.name << " " << i << " dropout " << dropout;
      }
    }
  }
}

TEST(Mlp, TheLastLayerIsReadyFirst) {
  Mlp model({3, 4, 2}, 1);
  EXPECT_EQ(Step(model, RandomBatch(2, 3, 2, 1), 0, 1).ready, (std::vector<size_t>{2, 3, 0, 1}));
}

TEST(Mlp, GradientsAddUp) {
  Mlp model({3, 4, 2}, 1);
  const Batch batch = RandomBatch(2, 3, 2, 1);
  const Step once(model, batch, 0, 1);
  std::vector<std::vector<float>> twice = once.gradients;
  std::vector<float*> pointers;
  pointers.reserve(twice.size());
  for (auto& gradient : twice) pointers.push_back(gradient.data());
  RandomStream random(1);
  model.TrainStep(batch.inputs, batch.labels, 0, random, pointers, [](size_t) {});
  for (size_t p = 0; p < twice.size(); ++p) {
    for (size_t i = 0; i < twice[p].size(); ++i) {
      EXPECT_FLOAT_EQ(twice[p][i], 2 * once.gradients[p][i]);
    }
  }
}

TEST(Mlp, EqualSeedsGiveEqualBits) {
  Mlp a({20, 30, 10}, 5), b({20, 30, 10}, 5), c({20, 30, 10}, 6);
  const Batch batch = RandomBatch(16, 20, 10, 4);
  EXPECT_EQ(Step(a, batch, 0.2F, 9).gradients, Step(b, batch, 0.2F, 9).gradients);
  EXPECT_EQ(a.Predict(batch.inputs), b.Predict(batch.inputs));
  EXPECT_NE(a.Predict(batch.inputs), c.Predict(batch.inputs));
}

TEST(Mlp, AnUntrainedModelGuesses) {
  Mlp model({20, 30, 10}, 5);
  const float loss = Step(model, RandomBatch(200, 20, 10, 4), 0, 1).loss;
  EXPECT_NEAR(loss, std::log(10.0F), 0.8F);
}

}  // namespace
}  // namespace fashion_mnist
