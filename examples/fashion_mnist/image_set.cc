#include "examples/fashion_mnist/image_set.h"

#include <algorithm>
#include <utility>

#include "examples/fashion_mnist/idx_file.h"

namespace fashion_mnist {

using muster::Status;
using muster::StatusCode;

void ImageSet::CopyTo(size_t index, float* to) const {
  const uint8_t* image = pixels.data() + index * kPixels;
  for (int i = 0; i < kPixels; ++i) to[i] = static_cast<float>(image[i]) * (1.0F / 255.0F);
}

muster::Result<ImageSet> LoadImages(const std::string& directory, Part part) {
  const std::string stem = directory + (part == Part::kTraining ? "/train" : "/t10k");
  muster::Result<IdxFile> images = ReadIdxFile(stem + "-images-idx3-ubyte.gz");
  muster::Result<IdxFile> labels = ReadIdxFile(stem + "-labels-idx1-ubyte.gz");
  for (const auto* file : {&images, &labels}) {
    if (file->ok()) continue;
    return Status(file->status().code(),
                  "the data set can't be read (" + file->status().message() +
                      "): install Debian's package dataset-fashion-mnist, or name the folder of "
                      "its four files with --data");
  }
  if (images->sizes != std::vector<uint32_t>{labels->sizes[0], 28, 28} ||
      labels->sizes.size() != 1 ||
      std::any_of(labels->bytes.begin(), labels->bytes.end(),
                  [](uint8_t label) { return label >= kClasses; })) {
    return Status(StatusCode::kDataLoss,
                  stem + "-*.gz are not 28 x 28 images with as many classes of 0 to 9");
  }
  return ImageSet{.pixels = std::move(images->bytes), .labels = std::move(labels->bytes)};
}

}  // namespace fashion_mnist
