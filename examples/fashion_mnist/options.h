// The program's flags. Values.
#ifndef MUSTER_EXAMPLES_FASHION_MNIST_OPTIONS_H_
#define MUSTER_EXAMPLES_FASHION_MNIST_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fashion_mnist {

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  int epochs = 6;
  // Samples of one rank in one step.
  int batch = 64;
  std::vector<int> hidden = {128, 64};
  // Falls linearly to 0 over all epochs.
  float learning_rate = 0.1F;
  float momentum = 0.9F;
  float dropout = 0.1F;
  uint64_t seed = 1;
  // Empty: no checkpoints.
  std::string checkpoint_dir;
  // Steps.
  int64_t checkpoint_every = 300;
  int keep = 3;
  // Only the first so many training images; 0: all.
  uint64_t limit = 0;
  // Stop after so many steps of the run as a whole, as if killed; 0: don't.
  int64_t stop_after = 0;
};

// The options, or nothing after --help or a mistake, which was said: `exit_code` is the program's
// then (0, or 64 for a mistake).
std::optional<Options> ParseOptions(int argc, char** argv, int* exit_code);

}  // namespace fashion_mnist

#endif  // MUSTER_EXAMPLES_FASHION_MNIST_OPTIONS_H_
