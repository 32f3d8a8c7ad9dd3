#include "examples/fashion_mnist/trainer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace fashion_mnist {
namespace {

// Ten classes that differ in which pixels are bright, with noise: learnable in a few steps.
ImageSet PatternImages(size_t count, uint64_t seed) {
  muster::RandomStream random(seed);
  ImageSet images;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t label = random.Below(kClasses);
    images.labels.push_back(static_cast<uint8_t>(label));
    for (uint64_t pixel = 0; pixel < kPixels; ++pixel) {
      const uint64_t light = pixel % kClasses == label ? 100 : 0;
      images.pixels.push_back(static_cast<uint8_t>(light + random.Below(150)));
    }
  }
  return images;
}

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::string(std::getenv("TEST_TMPDIR")) + "/trainer.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    options_.epochs = 2;
    options_.batch = 16;
    options_.hidden = {32};
    options_.checkpoint_every = 1000;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  struct Outcome {
    std::string params;
    double accuracy = 0;
    int64_t step = 0;
    std::optional<int64_t> resumed_step;
  };
  // One life of the program, in a world of one.
  Outcome Live(const Options& options) {
    auto context = muster::Context::Create();
    EXPECT_TRUE(context.ok()) << context.status().message();
    auto group = muster::CreateProcessGroup(**context);
    EXPECT_TRUE(group.ok()) << group.status().message();
    Report silent(nullptr, false);
    auto trainer = Trainer::Create({.context = **context,
                                    .group = **group,
                                    .training = training_,
                                    .test = test_,
                                    .report = silent},
                                   options);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    if (!trainer.ok()) return {};
    const muster::Status run = (*trainer)->Run();
    EXPECT_TRUE(run.ok()) << run.message();
    const auto accuracy = (*trainer)->Evaluate();
    EXPECT_TRUE(accuracy.ok());
    return {.params = (*trainer)->Fingerprint(),
            .accuracy = accuracy.ok() ? *accuracy : 0,
            .step = (*trainer)->step(),
            .resumed_step = (*trainer)->resumed_step()};
  }

  ImageSet training_ = PatternImages(1000, 1);
  ImageSet test_ = PatternImages(300, 2);
  Options options_;
  std::string root_;
};

TEST_F(TrainerTest, LearnsAPattern) {
  const Outcome outcome = Live(options_);
  EXPECT_EQ(outcome.step, 2 * 63);
  EXPECT_GT(outcome.accuracy, 0.95);
  EXPECT_FALSE(outcome.resumed_step.has_value());
}

TEST_F(TrainerTest, TheSeedDecidesTheResult) {
  const std::string params = Live(options_).params;
  EXPECT_EQ(Live(options_).params, params);
  options_.seed = 2;
  EXPECT_NE(Live(options_).params, params);
}

// Stopped in the middle of an epoch, at its last step, and in the next: the bits are those of an
// undisturbed run.
TEST_F(TrainerTest, ResumedRunsEndWithTheSameBits) {
  const std::string straight = Live(options_).params;
  Options broken = options_;
  broken.checkpoint_dir = root_;
  broken.checkpoint_every = 7;
  std::optional<int64_t> resumed;
  for (int64_t stop : {30, 63, 70, 101}) {
    broken.stop_after = stop;
    const Outcome life = Live(broken);
    EXPECT_EQ(life.resumed_step, resumed);
    EXPECT_EQ(life.step, stop);
    EXPECT_NE(life.params, straight);
    resumed = stop / 7 * 7;
  }
  broken.stop_after = 0;
  const Outcome last = Live(broken);
  EXPECT_EQ(last.resumed_step, 98);
  EXPECT_EQ(last.params, straight);

  // A finished run started again trains no more.
  const Outcome again = Live(broken);
  EXPECT_EQ(again.resumed_step, 126);
  EXPECT_EQ(again.params, straight);
}

TEST_F(TrainerTest, ACheckpointOfAnotherModelIsRefused) {
  options_.checkpoint_dir = root_;
  Live(options_);
  options_.hidden = {33};
  auto context = muster::Context::Create();
  ASSERT_TRUE(context.ok());
  auto group = muster::CreateProcessGroup(**context);
  ASSERT_TRUE(group.ok());
  Report silent(nullptr, false);
  const auto trainer = Trainer::Create({.context = **context,
                                        .group = **group,
                                        .training = training_,
                                        .test = test_,
                                        .report = silent},
                                       options_);
  EXPECT_EQ(trainer.status().code(), muster::StatusCode::kInvalidArgument);
  EXPECT_NE(trainer.status().message().find("layer1.weight"), std::string::npos);
}

TEST_F(TrainerTest, LearnsFashionMnist) {
  auto training = LoadImages(options_.data, Part::kTraining);
  auto test = LoadImages(options_.data, Part::kTest);
  if (training.status().code() == muster::StatusCode::kNotFound) {
    GTEST_SKIP() << training.status().message();
  }
  ASSERT_TRUE(training.ok() && test.ok());
  training_ = *std::move(training);
  test_ = *std::move(test);
  EXPECT_EQ(training_.size(), 60000U);
  options_.limit = 6000;
  options_.batch = 64;
  EXPECT_GT(Live(options_).accuracy, 0.7);
}

TEST_F(TrainerTest, MissingDataSayWhatToDo) {
  const auto missing = LoadImages(root_ + "/nowhere", Part::kTraining).status();
  EXPECT_EQ(missing.code(), muster::StatusCode::kNotFound);
  for (const char* word : {"/nowhere/train-images", "dataset-fashion-mnist", "--data"}) {
    EXPECT_NE(missing.message().find(word), std::string::npos) << missing.message();
  }
}

}  // namespace
}  // namespace fashion_mnist
