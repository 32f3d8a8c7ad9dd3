#include "examples/fashion_mnist/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace fashion_mnist {
namespace {

// EX_USAGE of sysexits.h, muster's code for bad flags.
constexpr int kUsageError = 64;

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* exit_code) {
  Options options;
  CLI::App app(
      "Trains a multilayer perceptron on Fashion-MNIST, on every rank that muster starts:\n"
      "  muster run --standalone --nproc-per-node=2 --no-python fashion_mnist "
      "--checkpoint-dir=/tmp/run1",
      "fashion_mnist");
  app.add_option("--data", options.data, "Folder of the four files")->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes over the data")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Samples per rank and step")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_option("--hidden", options.hidden, "Sizes of the hidden layers")
      ->check(CLI::Range(1, 65536))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate, "At first; falls to 0")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "Of the gradient descent")
      ->check(CLI::Range(0.0F, 0.999F))
      ->capture_default_str();
  app.add_option("--dropout", options.dropout, "Share of hidden values dropped")
      ->check(CLI::Range(0.0F, 0.9F))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of weights, order and dropout")->capture_default_str();
  app.add_option("--checkpoint-dir", options.checkpoint_dir,
                 "Save checkpoints here, and go on from the newest");
  app.add_option("--checkpoint-every", options.checkpoint_every, "Steps between checkpoints")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--keep", options.keep, "Checkpoints to keep")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--limit", options.limit, "Train on the first so many images only (0: all)");
  app.add_option("--stop-after", options.stop_after, "End after so many steps in all (0: don't)")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    *exit_code = app.exit(help);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "fashion_mnist: %s (see --help)\n", error.what());
    *exit_code = kUsageError;
    return std::nullopt;
  }
  return options;
}

}  // namespace fashion_mnist
