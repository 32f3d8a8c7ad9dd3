// The images of Fashion-MNIST and their classes, in memory. Loaded once, then only read.
#ifndef MUSTER_EXAMPLES_FASHION_MNIST_IMAGE_SET_H_
#define MUSTER_EXAMPLES_FASHION_MNIST_IMAGE_SET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker_sdk/muster.h"

namespace fashion_mnist {

inline constexpr int kPixels = 28 * 28;
inline constexpr int kClasses = 10;

struct ImageSet {
  // kPixels bytes for each image.
  std::vector<uint8_t> pixels;
  // 0 .. kClasses-1 for each image.
  std::vector<uint8_t> labels;

  size_t size() const { return labels.size(); }
  // Writes image `index` to `to` as kPixels numbers in 0..1.
  void CopyTo(size_t index, float* to) const;
};

enum class Part { kTraining, kTest };

// Reads one part from `directory`, as Debian's package dataset-fashion-mnist installs it. An error
// is one sentence that names the path and what to do.
muster::Result<ImageSet> LoadImages(const std::string& directory, Part part);

}  // namespace fashion_mnist

#endif  // MUSTER_EXAMPLES_FASHION_MNIST_IMAGE_SET_H_
