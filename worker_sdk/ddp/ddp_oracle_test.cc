// Is data-parallel training the same as training? A small network with a hand-written backward
// pass, different data on every rank, compared after N steps with two oracles: a serial program
// that adds the ranks' gradients in rank order (the same bits), and one process that trains on the
// concatenated batch (within 1e-5). A run without synchronisation must fail both comparisons.
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "worker_sdk/collectives/cpu/group_rig.h"
#include "worker_sdk/ddp/reducer.h"

namespace muster {
namespace {

using cpu::GroupRig;

constexpr size_t kInputs = 6, kHidden = 9, kOutputs = 3, kBatch = 4;
constexpr int kSteps = 25;

// y = W2 tanh(W1 x + b1) + b2, trained on the mean squared error by SGD with momentum.
template <class T>
struct Network {
  enum { kW1, kB1, kW2, kB2, kParameters };
  std::vector<T> values[kParameters] = {std::vector<T>(kHidden * kInputs), std::vector<T>(kHidden),
                                        std::vector<T>(kOutputs* kHidden),
                                        std::vector<T>(kOutputs)};
  std::vector<T> momenta[kParameters] = {values[0], values[1], values[2], values[3]};

  explicit Network(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-0.5, 0.5);
    for (auto& parameter : values) {
      for (T& value : parameter) value = static_cast<T>(uniform(random));
    }
  }

  void Update(int parameter, std::span<const T> gradient) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      T& momentum = momenta[parameter][i];
      momentum = static_cast<T>(0.9) * momentum + gradient[i];
      values[parameter][i] -= static_cast<T>(0.05) * momentum;
    }
  }
};

template <class T>
struct Batch {
  std::vector<T> inputs, targets;
  size_t size() const { return inputs.size() / kInputs; }
};

// The batch of one rank in one step.
template <class T>
Batch<T> BatchOf(int rank, int step) {
  std::mt19937 random(static_cast<unsigned>(1000 * rank + step));
  std::normal_distribution<double> normal;
  Batch<T> batch{std::vector<T>(kBatch * kInputs), std::vector<T>(kBatch * kOutputs)};
  for (T& x : batch.inputs) x = static_cast<T>(normal(random));
  for (T& y : batch.targets) y = static_cast<T>(normal(random));
  return batch;
}

// Adds the gradient of the batch's mean loss to `gradients`, the last layer's first, telling
// `is_ready` when a parameter's is complete.
template <class T>
void Backward(const Network<T>& net, const Batch<T>& batch,
              const std::vector<std::span<T>>& gradients,
              const std::function<void(int)>& is_ready) {
  using N = Network<T>;
  size_t n = batch.size();
  std::vector<T> hidden(n * kHidden), error(n * kOutputs);
  for (size_t s = 0; s < n; ++s) {
    for (size_t h = 0; h < kHidden; ++h) {
      T sum = net.values[N::kB1][h];
      for (size_t i = 0; i < kInputs; ++i) {
        sum += net.values[N::kW1][h * kInputs + i] * batch.inputs[s * kInputs + i];
      }
      hidden[s * kHidden + h] = std::tanh(sum);
    }
    for (size_t o = 0; o < kOutputs; ++o) {
      T sum = net.values[N::kB2][o];
      for (size_t h = 0; h < kHidden; ++h) {
        sum += net.values[N::kW2][o * kHidden + h] * hidden[s * kHidden + h];
      }
      error[s * kOutputs + o] = 2 * (sum - batch.targets[s * kOutputs + o]) / static_cast<T>(n);
    }
  }
  for (size_t s = 0; s < n; ++s) {
    for (size_t o = 0; o < kOutputs; ++o) gradients[N::kB2][o] += error[s * kOutputs + o];
  }
  is_ready(N::kB2);
  for (size_t s = 0; s < n; ++s) {
    for (size_t o = 0; o < kOutputs; ++o) {
      for (size_t h = 0; h < kHidden; ++h) {
        gradients[N::kW2][o * kHidden + h] += error[s * kOutputs + o] * hidden[s * kHidden + h];
      }
    }
  }
  is_ready(N::kW2);
  for (size_t s = 0; s < n; ++s) {
    for (size_t h = 0; h < kHidden; ++h) {
      T sum = 0;
      for (size_t o = 0; o < kOutputs; ++o) {
        sum += error[s * kOutputs + o] * net.values[N::kW2][o * kHidden + h];
      }
      T value = hidden[s * kHidden + h];
      T slope = sum * (1 - value * value);
      gradients[N::kB1][h] += slope;
      for (size_t i = 0; i < kInputs; ++i) {
        gradients[N::kW1][h * kInputs + i] += slope * batch.inputs[s * kInputs + i];
      }
    }
  }
  is_ready(N::kB1);
  is_ready(N::kW1);
}

template <class T>
using Gradients = std::vector<std::vector<T>>;

template <class T>
Gradients<T> GradientsOf(const Network<T>& net, const Batch<T>& batch) {
  Gradients<T> gradients;
  for (const auto& parameter : net.values) gradients.emplace_back(parameter.size());
  Backward<T>(net, batch, {gradients.begin(), gradients.end()}, [](int) {});
  return gradients;
}

// One process; the ranks' gradients one after the other, added in rank order.
template <class T>
Network<T> TrainInRankOrder(int ranks) {
  Network<T> net(0);
  for (int step = 0; step < kSteps; ++step) {
    Gradients<T> sum = GradientsOf(net, BatchOf<T>(0, step));
    for (int r = 1; r < ranks; ++r) {
      Gradients<T> next = GradientsOf(net, BatchOf<T>(r, step));
      for (size_t p = 0; p < sum.size(); ++p) {
        for (size_t i = 0; i < sum[p].size(); ++i) sum[p][i] += next[p][i];
      }
    }
    for (size_t p = 0; p < sum.size(); ++p) {
      for (T& g : sum[p]) g /= static_cast<T>(ranks);
      net.Update(static_cast<int>(p), sum[p]);
    }
  }
  return net;
}

// One process that knows nothing of ranks: all their data are one batch.
template <class T>
Network<T> TrainConcatenated(int ranks) {
  Network<T> net(0);
  for (int step = 0; step < kSteps; ++step) {
    Batch<T> all;
    for (int r = 0; r < ranks; ++r) {
      Batch<T> batch = BatchOf<T>(r, step);
      all.inputs.insert(all.inputs.end(), batch.inputs.begin(), batch.inputs.end());
      all.targets.insert(all.targets.end(), batch.targets.begin(), batch.targets.end());
    }
    Gradients<T> gradients = GradientsOf(net, all);
    for (size_t p = 0; p < gradients.size(); ++p) {
      net.Update(static_cast<int>(p), gradients[p]);
    }
  }
  return net;
}

template <class T>
std::vector<Network<T>> TrainInParallel(int ranks, bool is_synchronised) {
  std::vector<Network<T>> nets;
  nets.reserve(static_cast<size_t>(ranks));
  // Different seeds: the initial broadcast makes them equal.
  for (int r = 0; r < ranks; ++r) nets.emplace_back(static_cast<unsigned>(r));
  GroupRig(ranks).Run([&](ProcessGroup& group) {
    Network<T>& net = nets[static_cast<size_t>(group.rank())];
    std::vector<Parameter> parameters;
    parameters.reserve(Network<T>::kParameters);
    for (int p = 0; p < Network<T>::kParameters; ++p) {
      parameters.push_back(
          {"p" + std::to_string(p), net.values[p].data(), net.values[p].size(), DataTypeOf<T>()});
    }
    ReducerOptions options;
    options.limits = {64, 128};
    auto reducer = Reducer::Create(group, parameters, options);
    ASSERT_TRUE(reducer.ok()) << reducer.status().message();
    std::vector<std::span<T>> gradients;
    for (size_t p = 0; p < parameters.size(); ++p) {
      gradients.push_back({static_cast<T*>((*reducer)->Gradient(p).data), parameters[p].count});
    }
    std::optional<Reducer::NoSync> no_sync;
    if (!is_synchronised) no_sync.emplace(**reducer);
    for (int step = 0; step < kSteps; ++step) {
      (*reducer)->ZeroGradients();
      Backward<T>(net, BatchOf<T>(group.rank(), step), gradients,
                  [&](int p) { ASSERT_TRUE((*reducer)->MarkReady(static_cast<size_t>(p)).ok()); });
      ASSERT_TRUE((*reducer)->Finish().ok());
      for (size_t p = 0; p < gradients.size(); ++p) net.Update(static_cast<int>(p), gradients[p]);
    }
  });
  return nets;
}

template <class T>
bool SameBits(const Network<T>& a, const Network<T>& b) {
  for (int p = 0; p < Network<T>::kParameters; ++p) {
    if (std::memcmp(a.values[p].data(), b.values[p].data(), a.values[p].size() * sizeof(T)) != 0) {
      return false;
    }
  }
  return true;
}

// |a - b| / |b|, over all parameters.
template <class T>
double RelativeDistance(const Network<T>& a, const Network<T>& b) {
  double distance = 0, length = 0;
  for (int p = 0; p < Network<T>::kParameters; ++p) {
    for (size_t i = 0; i < a.values[p].size(); ++i) {
      double x = a.values[p][i], y = b.values[p][i];
      distance += (x - y) * (x - y);
      length += y * y;
    }
  }
  return std::sqrt(distance / length);
}

template <class T>
class DdpOracle : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(DdpOracle, Types);

TYPED_TEST(DdpOracle, ParametersAreThoseOfSerialTraining) {
  for (int ranks : {2, 3}) {
    Network<TypeParam> serial = TrainInRankOrder<TypeParam>(ranks);
    Network<TypeParam> single = TrainConcatenated<TypeParam>(ranks);
    // Training does something, and the two oracles don't coincide by accident of a trivial problem.
    EXPECT_GT(RelativeDistance(single, Network<TypeParam>(0)), 0.1);
    std::vector<Network<TypeParam>> nets = TrainInParallel<TypeParam>(ranks, true);
    for (const auto& net : nets) {
      EXPECT_TRUE(SameBits(net, serial)) << ranks << " ranks";
      EXPECT_LT(RelativeDistance(net, single), 1e-5) << ranks << " ranks";
    }
  }
}

TYPED_TEST(DdpOracle, NegativeControlWithoutSynchronisationTheComparisonsFail) {
  for (int ranks : {2, 3}) {
    Network<TypeParam> serial = TrainInRankOrder<TypeParam>(ranks);
    Network<TypeParam> single = TrainConcatenated<TypeParam>(ranks);
    std::vector<Network<TypeParam>> nets = TrainInParallel<TypeParam>(ranks, false);
    for (const auto& net : nets) {
      EXPECT_FALSE(SameBits(net, serial));
      EXPECT_GT(RelativeDistance(net, single), 1e-3);
    }
    EXPECT_FALSE(SameBits(nets[0], nets[1]));
  }
}

}  // namespace
}  // namespace muster
