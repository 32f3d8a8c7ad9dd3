#include "examples/fashion_mnist/trainer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fashion_mnist {

using muster::MutableView;
using muster::Status;
using muster::StatusCode;

namespace {

// Larger than the last layers together, smaller than the first: their gradients travel while the
// first layer's, by far the longest to compute, are being made.
constexpr size_t kFirstBucketBytes = 16 << 10;

std::vector<int> LayerSizes(const Options& options) {
  std::vector<int> sizes = {kPixels};
  sizes.insert(sizes.end(), options.hidden.begin(), options.hidden.end());
  sizes.push_back(kClasses);
  return sizes;
}

uint64_t TrainingSize(const Options& options, const ImageSet& training) {
  const uint64_t all = training.size();
  return options.limit == 0 ? all : std::min(options.limit, all);
}

std::string Format(const char* format, auto... values) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

}  // namespace

Trainer::Trainer(const Surroundings& surroundings, const Options& options)
    : surroundings_(surroundings),
      options_(options),
      model_(LayerSizes(options), options.seed),
      sampler_({.dataset_size = TrainingSize(options, surroundings.training),
                .rank = surroundings.group.rank(),
                .world_size = surroundings.group.world_size(),
                .seed = options.seed}),
      // Stream 0 would be that of the weights.
      random_(options.seed, 1 + static_cast<uint64_t>(surroundings.group.rank())) {}

muster::Result<std::unique_ptr<Trainer>> Trainer::Create(const Surroundings& surroundings,
                                                         const Options& options) {
  std::unique_ptr<Trainer> trainer(new Trainer(surroundings, options));
  Status prepared = trainer->Prepare();
  if (prepared.ok() && !options.checkpoint_dir.empty()) prepared = trainer->Resume();
  if (!prepared.ok()) return prepared;
  return trainer;
}

Status Trainer::Prepare() {
  std::vector<muster::Parameter> parameters;
  for (Mlp::Tensor& tensor : model_.parameters()) {
    parameters.push_back({.name = tensor.name,
                          .data = tensor.values.data(),
                          .count = tensor.count(),
                          .type = muster::DataType::kF32});
    momenta_.emplace_back(tensor.count());
  }
  muster::ReducerOptions reducer_options;
  reducer_options.limits.first_bytes = kFirstBucketBytes;
  auto reducer =
      muster::Reducer::Create(surroundings_.group, std::move(parameters), reducer_options);
  if (!reducer.ok()) return reducer.status();
  reducer_ = *std::move(reducer);
  for (size_t i = 0; i < reducer_->parameter_count(); ++i) {
    gradients_.push_back(static_cast<float*>(reducer_->Gradient(i).data));
  }
  return {};
}

Status Trainer::Resume() {
  auto store =
      muster::CheckpointStore::Open(surroundings_.context, surroundings_.group,
                                    {.directory = options_.checkpoint_dir, .keep = options_.keep});
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  auto loaded = store_->Load();
  if (!loaded.ok()) return loaded.status();
  if (!loaded->has_value()) return {};
  const muster::LoadedCheckpoint& checkpoint = **loaded;

  for (size_t i = 0; i < momenta_.size(); ++i) {
    Mlp::Tensor& tensor = model_.parameters()[i];
    Status copied = checkpoint.CopyTo(
        tensor.name, {tensor.values.data(), tensor.count(), muster::DataType::kF32});
    if (copied.ok())
      copied = checkpoint.CopyTo("momentum." + tensor.name, MutableView(momenta_[i]));
    if (!copied.ok()) return copied;
  }
  if (checkpoint.sampler().has_value()) {
    Status restored = sampler_.Restore(*checkpoint.sampler());
    if (!restored.ok()) return restored;
  }
  const int rank = surroundings_.group.rank();
  if (!random_.Restore(checkpoint.random_state(rank))) {
    // A rank that the saving world didn't have: a stream that depends on nothing but what all know.
    random_ = muster::RandomStream(options_.seed + static_cast<uint64_t>(checkpoint.step()),
                                   1 + static_cast<uint64_t>(rank));
  }
  step_ = checkpoint.step();
  resumed_step_ = step_;
  surroundings_.report.Line(
      Format("resumed step=%ld from %s", static_cast<long>(step_), checkpoint.name().c_str()));
  return {};
}

Status Trainer::Run() {
  while (sampler_.epoch() < options_.epochs && !IsStopped()) {
    const std::vector<uint64_t> batch = sampler_.NextBatch(static_cast<uint64_t>(options_.batch));
    if (batch.empty()) {
      Status finished = FinishEpoch();
      if (!finished.ok()) return finished;
      continue;
    }
    Status trained = TrainOn(batch);
    if (!trained.ok()) return trained;
    if (store_ == nullptr) {
      surroundings_.context.StepDone(step_);
    } else if (surroundings_.context.ShouldSave(step_) || step_ % options_.checkpoint_every == 0) {
      Status saved = Save();
      if (!saved.ok()) return saved;
    }
  }
  // Started again, a finished run then has nothing left to do.
  return store_ == nullptr || IsStopped() ? Status() : Save();
}

Status Trainer::TrainOn(const std::vector<uint64_t>& batch) {
  const ImageSet& images = surroundings_.training;
  Matrix inputs(static_cast<Eigen::Index>(batch.size()), kPixels);
  std::vector<uint8_t> labels(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    images.CopyTo(batch[i], inputs.row(static_cast<Eigen::Index>(i)).data());
    labels[i] = images.labels[batch[i]];
  }
  reducer_->ZeroGradients();
  Status marked;
  loss_sum_ +=
      model_.TrainStep(inputs, labels, options_.dropout, random_, gradients_, [&](size_t index) {
        const Status status = reducer_->MarkReady(index);
        if (!status.ok()) marked = status;
      });
  ++loss_count_;
  Status reduced = reducer_->Finish();
  if (!reduced.ok()) return reduced;
  if (!marked.ok()) return marked;

  const float rate = LearningRate();
  for (size_t i = 0; i < gradients_.size(); ++i) {
    float* values = model_.parameters()[i].values.data();
    const float* gradient = gradients_[i];
    std::vector<float>& momentum = momenta_[i];
    for (size_t k = 0; k < momentum.size(); ++k) {
      momentum[k] = options_.momentum * momentum[k] + gradient[k];
      values[k] -= rate * momentum[k];
    }
  }
  sampler_.StepCompleted(batch.size());
  ++step_;
  const muster::SamplerState state = sampler_.state();
  surroundings_.report.Step(state.epoch + 1, state.position, state.dataset_size);
  return {};
}

// A function of the samples used so far: the same in every world.
float Trainer::LearningRate() const {
  const muster::SamplerState state = sampler_.state();
  const double epochs =
      static_cast<double>(state.epoch) +
      static_cast<double>(state.position) / static_cast<double>(state.dataset_size);
  const double left = 1 - epochs / static_cast<double>(options_.epochs);
  return options_.learning_rate * static_cast<float>(std::max(left, 0.0));
}

Status Trainer::FinishEpoch() {
  std::array<double, 2> loss = {loss_sum_, static_cast<double>(loss_count_)};
  Status summed = surroundings_.group.AllReduce(MutableView(loss), muster::ReduceOp::kSum).Wait();
  if (!summed.ok()) return summed;
  const muster::Result<double> accuracy = Evaluate();
  if (!accuracy.ok()) return accuracy.status();
  // A life that began at the end of the epoch has made no step of it.
  const std::string mean = loss[1] > 0 ? Format("%.4f", loss[0] / loss[1]) : "-";
  surroundings_.report.Line(Format("epoch %ld/%d step=%ld loss=%s accuracy=%.4f",
                                   static_cast<long>(sampler_.epoch()), options_.epochs,
                                   static_cast<long>(step_), mean.c_str(), *accuracy));
  loss_sum_ = 0;
  loss_count_ = 0;
  return {};
}

muster::Result<double> Trainer::Evaluate() {
  constexpr size_t kAtOnce = 500;
  const ImageSet& images = surroundings_.test;
  const auto world = static_cast<size_t>(surroundings_.group.world_size());
  std::vector<size_t> mine;
  for (size_t i = static_cast<size_t>(surroundings_.group.rank()); i < images.size(); i += world) {
    mine.push_back(i);
  }
  std::array<int64_t, 2> right_and_all = {0, static_cast<int64_t>(mine.size())};
  for (size_t begin = 0; begin < mine.size(); begin += kAtOnce) {
    const size_t count = std::min(kAtOnce, mine.size() - begin);
    Matrix inputs(static_cast<Eigen::Index>(count), kPixels);
    for (size_t i = 0; i < count; ++i) {
      images.CopyTo(mine[begin + i], inputs.row(static_cast<Eigen::Index>(i)).data());
    }
    const Matrix scores = model_.Predict(inputs);
    for (size_t i = 0; i < count; ++i) {
      Eigen::Index best = 0;
      scores.row(static_cast<Eigen::Index>(i)).maxCoeff(&best);
      if (best == images.labels[mine[begin + i]]) ++right_and_all[0];
    }
  }
  Status summed =
      surroundings_.group.AllReduce(MutableView(right_and_all), muster::ReduceOp::kSum).Wait();
  if (!summed.ok()) return summed;
  return static_cast<double>(right_and_all[0]) /
         static_cast<double>(std::max<int64_t>(right_and_all[1], 1));
}

Status Trainer::Save() {
  const muster::SamplerState state = sampler_.state();
  muster::Snapshot snapshot{.step = step_,
                            .epoch = state.epoch,
                            .tensors = {},
                            .sampler = state,
                            .random_state = random_.Save()};
  for (size_t i = 0; i < momenta_.size(); ++i) {
    const Mlp::Tensor& tensor = model_.parameters()[i];
    const std::vector<uint64_t> shape = {static_cast<uint64_t>(tensor.values.rows()),
                                         static_cast<uint64_t>(tensor.values.cols())};
    snapshot.tensors.push_back(
        {.name = tensor.name,
         .data = {tensor.values.data(), tensor.count(), muster::DataType::kF32},
         .shape = shape});
    snapshot.tensors.push_back(
        {.name = "momentum." + tensor.name, .data = muster::View(momenta_[i]), .shape = shape});
  }
  Status saved = store_->Save(snapshot);
  if (saved.code() == StatusCode::kAborted) return saved;
  // A full disk is no reason to lose the run: the next try may succeed.
  surroundings_.report.Line(saved.ok() ? Format("checkpoint step=%ld", static_cast<long>(step_))
                                       : "warning: " + saved.message());
  return {};
}

std::string Trainer::Fingerprint() {
  muster::Fingerprint fingerprint;
  for (const Mlp::Tensor& tensor : model_.parameters()) {
    fingerprint.Add(tensor.values.data(), tensor.count() * sizeof(float));
  }
  return fingerprint.ToHex();
}

}  // namespace fashion_mnist
