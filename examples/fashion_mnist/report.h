// What a person sees of the training: a line for each epoch and checkpoint, and on a terminal a bar
// for the running epoch. Rank 0 has one that prints, the others a silent one. One thread at a time.
#ifndef MUSTER_EXAMPLES_FASHION_MNIST_REPORT_H_
#define MUSTER_EXAMPLES_FASHION_MNIST_REPORT_H_

#include <cstdint>
#include <cstdio>
#include <string>

namespace fashion_mnist {

class Report {
 public:
  // Null: silent. Borrows `out`.
  Report(std::FILE* out, bool is_terminal) : out_(out), has_bar_(out != nullptr && is_terminal) {}

  // A line of its own, above the bar.
  void Line(const std::string& text);
  // `done` of the epoch's `total` steps; draws at most a hundred times an epoch.
  void Step(int64_t epoch, uint64_t done, uint64_t total);

 private:
  void ClearBar();

  std::FILE* out_;
  bool has_bar_;
  // What the bar shows, -1: there is none.
  int64_t percent_ = -1;
};

}  // namespace fashion_mnist

#endif  // MUSTER_EXAMPLES_FASHION_MNIST_REPORT_H_
